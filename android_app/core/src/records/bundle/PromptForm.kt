package org.ondeviceprofiler.core

/** How a task's prompt is wrapped before the host makes it token ids. */
internal data class PromptForm(
    val template: String,
    val negativeTemplate: String,
    val lowercase: Boolean,
    val limit: Long?,
    val cut: Boolean,
    val hidden: Long,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "template" to template,
            "negative_template" to negativeTemplate,
            "lowercase" to lowercase,
            "limit" to limit,
            "cut" to cut,
            "hidden" to hidden,
        )

    companion object {
        fun read(value: Value): PromptForm =
            value.record {
                PromptForm(
                    this["template"]?.text() ?: "{prompt}",
                    this["negative_template"]?.text() ?: "{prompt}",
                    this["lowercase"]?.boolean() ?: false,
                    this["limit"]?.orNull { integer() },
                    this["cut"]?.boolean() ?: true,
                    this["hidden"]?.integer() ?: 0,
                )
            }
    }
}
