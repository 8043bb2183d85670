package org.ondeviceprofiler.core

/** Ask which of these files, relative to the runner's storage or absolute, are there. */
internal data class Inspect(val paths: List<String>) : Request {
    override fun toJson(): JsonObject = jsonOf("request" to "inspect", "paths" to paths)
}
