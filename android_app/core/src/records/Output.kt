package org.ondeviceprofiler.core

/** End the iteration: make uint8 RGB rows of a float image [1, 3, height, width] of 0–255, or leave a tensor as it is. */
internal data class Output(val value: String, val stage: String, val media: Media = Media.IMAGE) : PlanStep {
    override fun toJson(): JsonObject =
        jsonOf("kind" to "output", "value" to value, "stage" to stage, "media" to media)

    companion object {
        fun of(fields: Fields): Output =
            Output(
                fields.need("value").text(),
                fields.need("stage").text(),
                fields["media"]?.word(Media.entries) ?: Media.IMAGE,
            )
    }
}
