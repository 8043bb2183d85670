package org.ondeviceprofiler.core

/** Run a job. */
internal data class Start(val job: Job) : Request {
    override fun toJson(): JsonObject = jsonOf("request" to "start", "job" to job)
}
