package org.ondeviceprofiler.core

/** Written before each load and each stage, so that a killed runner tells where it died. */
internal data class Begin(
    override val stamp: Stamp,
    val phase: Phase,
    val iteration: Int?,
    val stage: String,
    val component: String?,
) : Event {
    override fun toJson(): JsonObject =
        jsonOf(
            *stamp.members("begin"),
            "phase" to phase,
            "iteration" to iteration,
            "stage" to stage,
            "component" to component,
        )

    companion object {
        fun of(fields: Fields): Begin =
            Begin(
                Stamp.of(fields),
                fields.need("phase").word(Phase.entries),
                fields.need("iteration").orNull { int() },
                fields.need("stage").text(),
                fields.need("component").orNull { text() },
            )
    }
}
