package org.ondeviceprofiler.core

/** Send a job's events again, from a sequence number on. */
internal data class Replay(val jobId: String, val fromSeq: Long) : Request {
    override fun toJson(): JsonObject = jsonOf("request" to "replay", "job_id" to jobId, "from_seq" to fromSeq)
}
