package org.ondeviceprofiler.core

/** What a scheme did to a component's weights, as the exporter measured it. */
internal data class Quantization(
    val scheme: String,
    val block: Long?,
    val absmaxDtype: String?,
    val bitsPerWeight: Double,
    val coverage: Double,
    val kept: List<String>,
    val fallenBack: List<String>,
    val tied: Map<String, String>,
    val tiedSavedBytes: Long,
    val idealBytes: Long,
    val fileBytes: Long,
    val fromFp32: Difference?,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "scheme" to scheme,
            "block" to block,
            "absmax_dtype" to absmaxDtype,
            "bits_per_weight" to bitsPerWeight,
            "coverage" to coverage,
            "kept" to kept,
            "fallen_back" to fallenBack,
            "tied" to tied,
            "tied_saved_bytes" to tiedSavedBytes,
            "ideal_bytes" to idealBytes,
            "file_bytes" to fileBytes,
            "from_fp32" to fromFp32,
        )

    companion object {
        fun read(value: Value): Quantization =
            value.record {
                Quantization(
                    need("scheme").oneOf(*Recipe.SCHEMES),
                    need("block").orNull { integer() },
                    need("absmax_dtype").orNull { oneOf("float32", "float16") },
                    need("bits_per_weight").real(),
                    need("coverage").real(),
                    need("kept").list { text() },
                    need("fallen_back").list { text() },
                    need("tied").map { text() },
                    need("tied_saved_bytes").integer(),
                    need("ideal_bytes").integer(),
                    need("file_bytes").integer(),
                    this["from_fp32"]?.orNull(Difference::read),
                )
            }
    }
}
