package org.ondeviceprofiler.core

/** End the conversation and the runner. */
internal data object Bye : Request {
    override fun toJson(): JsonObject = jsonOf("request" to "bye")
}
