package org.ondeviceprofiler.core

/** The inputs a plan runs on unless told otherwise, and what they were made from. */
internal data class DefaultInputs(
    val path: String,
    val prompt: String,
    val negativePrompt: String,
    val seed: Long,
    val sourceImage: String?,
    val madeUp: List<String>,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "path" to path,
            "prompt" to prompt,
            "negative_prompt" to negativePrompt,
            "seed" to seed,
            "source_image" to sourceImage,
            "made_up" to madeUp,
        )

    companion object {
        fun read(value: Value): DefaultInputs =
            value.record {
                DefaultInputs(
                    need("path").text(),
                    need("prompt").text(),
                    need("negative_prompt").text(),
                    need("seed").integer(),
                    this["source_image"]?.orNull { text() },
                    this["made_up"]?.list { text() } ?: emptyList(),
                )
            }
    }
}
