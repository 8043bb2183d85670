package org.ondeviceprofiler.core

/** One stage of an iteration; `roundsNs` are a loop's single rounds, in order. */
internal data class StageTime(val stage: String, val durationNs: Long, val roundsNs: List<Long>?) : Writable {
    override fun toJson(): JsonObject =
        jsonOf("stage" to stage, "duration_ns" to durationNs, "rounds_ns" to roundsNs)

    companion object {
        fun read(value: Value): StageTime =
            value.record {
                StageTime(
                    need("stage").text(),
                    need("duration_ns").integer(),
                    this["rounds_ns"]?.orNull { list { integer() } },
                )
            }
    }
}
