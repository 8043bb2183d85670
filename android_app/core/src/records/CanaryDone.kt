package org.ondeviceprofiler.core

/** How long the runner's own small workload took: it changes with the processor, not with the model. */
internal data class CanaryDone(override val stamp: Stamp, val moment: CanaryMoment, val durationNs: Long) : Event {
    override fun toJson(): JsonObject = jsonOf(*stamp.members("canary"), "when" to moment, "duration_ns" to durationNs)

    companion object {
        fun of(fields: Fields): CanaryDone =
            CanaryDone(
                Stamp.of(fields),
                fields.need("when").word(CanaryMoment.entries),
                fields.need("duration_ns").integer(),
            )
    }
}
