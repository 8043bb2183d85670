package org.ondeviceprofiler.core

/** A request that the runner will not serve, and why. */
internal data class Refused(val code: RefusalCode, val reason: String) : Reply {
    override fun toJson(): JsonObject = jsonOf("reply" to "refused", "code" to code, "reason" to reason)
}
