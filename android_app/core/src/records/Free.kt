package org.ondeviceprofiler.core

/** Forget values that no later step reads. */
internal data class Free(val values: List<String>) : LoopStep {
    override fun toJson(): JsonObject = jsonOf("kind" to "free", "values" to values)

    companion object {
        fun of(fields: Fields): Free = Free(fields.need("values").list { text() })
    }
}
