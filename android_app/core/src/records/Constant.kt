package org.ondeviceprofiler.core

/** A small tensor that the plan carries itself, row-major. */
internal data class Constant(val dtype: DType, val shape: List<Int>, val values: List<Double>) : Writable {
    override fun toJson(): JsonObject = jsonOf("dtype" to dtype, "shape" to shape, "values" to values)

    companion object {
        fun read(value: Value): Constant =
            value.record {
                Constant(
                    need("dtype").word(DType.entries),
                    need("shape").list { int() },
                    need("values").list { real() },
                )
            }
    }
}
