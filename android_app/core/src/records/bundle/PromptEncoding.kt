package org.ondeviceprofiler.core

/** How a prompt becomes token ids, which the host does. */
internal data class PromptEncoding(
    val tokenizer: String,
    val length: Long,
    val forms: Map<String, PromptForm>,
) : Writable {
    override fun toJson(): JsonObject = jsonOf("tokenizer" to tokenizer, "length" to length, "forms" to forms)

    companion object {
        fun read(value: Value): PromptEncoding =
            value.record {
                PromptEncoding(
                    need("tokenizer").text(),
                    need("length").integer(),
                    this["forms"]?.byTask(PromptForm::read) ?: emptyMap(),
                )
            }
    }
}
