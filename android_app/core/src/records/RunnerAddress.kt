package org.ondeviceprofiler.core

/** Where a runner listens on its device's loopback; written into its storage once it does. */
internal data class RunnerAddress(val port: Int, val pid: Long) : Writable {
    override fun toJson(): JsonObject = jsonOf("port" to port, "pid" to pid)
}
