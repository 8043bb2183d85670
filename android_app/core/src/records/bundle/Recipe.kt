package org.ondeviceprofiler.core

/** Everything but the weights that decides what a bundle computes; a runner needs the picture's size only. */
internal data class Recipe(
    val runtime: String,
    val backend: String,
    val precision: String,
    val textEncoder: String,
    val kept: List<String>,
    val computeUnit: String,
    val loadPolicy: String,
    val guidanceBatching: String,
    val opset: Long,
    val height: Int,
    val width: Int,
    val relativeTolerance: Double,
    val uint8MaxLevels: Long,
    val uint8ChangedShare: Double,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "runtime" to runtime,
            "backend" to backend,
            "precision" to precision,
            "text_encoder" to textEncoder,
            "kept" to kept,
            "compute_unit" to computeUnit,
            "load_policy" to loadPolicy,
            "guidance_batching" to guidanceBatching,
            "opset" to opset,
            "height" to height,
            "width" to width,
            "relative_tolerance" to relativeTolerance,
            "uint8_max_levels" to uint8MaxLevels,
            "uint8_changed_share" to uint8ChangedShare,
        )

    companion object {
        val SCHEMES: Array<String> = arrayOf("fp32", "fp16", "int8", "nf4")

        fun read(value: Value): Recipe =
            value.record {
                Recipe(
                    this["runtime"]?.name() ?: "onnx",
                    this["backend"]?.oneOf("xnnpack", "coreml", "vulkan") ?: "xnnpack",
                    this["precision"]?.oneOf("fp32", "fp16") ?: "fp32",
                    this["text_encoder"]?.oneOf(*SCHEMES) ?: "fp32",
                    this["kept"]?.list { text() } ?: emptyList(),
                    this["compute_unit"]?.oneOf("cpu", "cpu_gpu", "all") ?: "cpu",
                    this["load_policy"]?.oneOf("resident", "sequential") ?: "resident",
                    this["guidance_batching"]?.oneOf("separate") ?: "separate",
                    this["opset"]?.integer() ?: 20,
                    need("height").int(),
                    need("width").int(),
                    this["relative_tolerance"]?.real() ?: 1e-3,
                    this["uint8_max_levels"]?.integer() ?: 1,
                    this["uint8_changed_share"]?.real() ?: 0.01,
                )
            }
    }
}
