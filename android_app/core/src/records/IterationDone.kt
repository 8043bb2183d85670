package org.ondeviceprofiler.core

/**
 * One image, from inputs in memory to finished uint8 RGB, with its stages in order; or one tensor.
 *
 * `gapNs` is the time since the last iteration ended; `traced` says whether samplers ran meanwhile.
 */
internal data class IterationDone(
    override val stamp: Stamp,
    val phase: Phase,
    val iteration: Int,
    val startBootNs: Long,
    val durationNs: Long,
    val gapNs: Long?,
    val stages: List<StageTime>,
    val imageSha256: String,
    val traced: Boolean,
) : Event {
    override fun toJson(): JsonObject =
        jsonOf(
            *stamp.members("iteration"),
            "phase" to phase,
            "iteration" to iteration,
            "start_boot_ns" to startBootNs,
            "duration_ns" to durationNs,
            "gap_ns" to gapNs,
            "stages" to stages,
            "image_sha256" to imageSha256,
            "traced" to traced,
        )

    companion object {
        fun of(fields: Fields): IterationDone =
            IterationDone(
                Stamp.of(fields),
                fields.need("phase").word(Phase.entries),
                fields.need("iteration").int(),
                fields.need("start_boot_ns").integer(),
                fields.need("duration_ns").integer(),
                fields.need("gap_ns").orNull { integer() },
                fields.need("stages").list(StageTime::read),
                fields.need("image_sha256").text(),
                fields.need("traced").boolean(),
            )
    }
}
