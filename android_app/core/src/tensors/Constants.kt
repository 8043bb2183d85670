package org.ondeviceprofiler.core

import java.nio.file.Path

/** Return every constant of a plan: those of its file in the bundle, and its own. Throws InvalidRecord. */
internal fun constantsOf(plan: Plan, folder: Path): Map<String, Tensor> =
    fileConstants(plan, folder) + plan.constants.mapValues { (_, constant) -> tensorOf(constant) }

/** Read the constants that a plan keeps in a file of the bundle. Throws InvalidRecord. */
internal fun fileConstants(plan: Plan, folder: Path): Map<String, Tensor> =
    plan.constantsFile?.let { readSafetensors(inside(folder, it)) } ?: emptyMap()

private fun tensorOf(constant: Constant): Tensor {
    val tensor = Tensor.allocate(constant.dtype, constant.shape)
    when (constant.dtype) {
        DType.FLOAT32 -> tensor.floats.put(FloatArray(constant.values.size) { constant.values[it].toFloat() })
        DType.INT32 -> tensor.ints.put(IntArray(constant.values.size) { constant.values[it].toInt() })
    }
    return tensor
}
