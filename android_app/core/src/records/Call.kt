package org.ondeviceprofiler.core

/** Run one function: `bind` maps its input ports to values, `emit` its output ports to new values. */
internal data class Call(
    val component: String,
    val function: String,
    val bind: Map<String, String>,
    val emit: Map<String, String>,
    val stage: String,
) : LoopStep {
    override fun toJson(): JsonObject =
        jsonOf(
            "kind" to "call",
            "component" to component,
            "function" to function,
            "bind" to bind,
            "emit" to emit,
            "stage" to stage,
        )

    companion object {
        fun of(fields: Fields): Call =
            Call(
                fields.need("component").text(),
                fields.need("function").text(),
                fields.need("bind").map { text() },
                fields.need("emit").map { text() },
                fields.need("stage").text(),
            )
    }
}
