package org.ondeviceprofiler.core

/** A job was taken; its events follow. */
internal data class Accepted(val jobId: String) : Reply {
    override fun toJson(): JsonObject = jsonOf("reply" to "accepted", "job_id" to jobId)
}
