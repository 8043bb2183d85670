package org.ondeviceprofiler.core

/** The job's end; `memory` holds the lifetime peak of this process, load included. */
internal data class Stop(
    override val stamp: Stamp,
    val outcome: Outcome,
    val reason: String?,
    val stage: String?,
    val component: String?,
    val memory: MemoryReading,
) : Event {
    override fun toJson(): JsonObject =
        jsonOf(
            *stamp.members("stop"),
            "outcome" to outcome,
            "reason" to reason,
            "stage" to stage,
            "component" to component,
            "memory" to memory,
        )

    companion object {
        fun of(fields: Fields): Stop =
            Stop(
                Stamp.of(fields),
                fields.need("outcome").word(Outcome.entries),
                fields.need("reason").orNull { text() },
                fields.need("stage").orNull { text() },
                fields.need("component").orNull { text() },
                MemoryReading.read(fields.need("memory")),
            )
    }
}
