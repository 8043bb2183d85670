package org.ondeviceprofiler.core

/** The head of every event; `deviceBootNs` is a clock that does not stop in sleep. */
internal data class Stamp(val seq: Long, val jobId: String, val deviceBootNs: Long, val wallNs: Long) {
    fun members(event: String): Array<Pair<String, Any?>> =
        arrayOf(
            "event" to event,
            "seq" to seq,
            "job_id" to jobId,
            "device_boot_ns" to deviceBootNs,
            "wall_ns" to wallNs,
        )

    companion object {
        fun of(fields: Fields): Stamp =
            Stamp(
                fields.need("seq").integer(),
                fields.need("job_id").text(),
                fields.need("device_boot_ns").integer(),
                fields.need("wall_ns").integer(),
            )
    }
}
