package org.ondeviceprofiler.core

/** Stop the job before its next call. */
internal data object Cancel : Request {
    override fun toJson(): JsonObject = jsonOf("request" to "cancel")
}
