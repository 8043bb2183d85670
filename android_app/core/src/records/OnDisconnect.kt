package org.ondeviceprofiler.core

/** What the runner does when the host goes away: stop after a while, or finish and exit. */
internal data class OnDisconnect(val kind: DisconnectKind, val seconds: Double?) : Writable {
    override fun toJson(): JsonObject = jsonOf("kind" to kind, "seconds" to seconds)

    companion object {
        fun read(value: Value): OnDisconnect =
            value.record {
                OnDisconnect(need("kind").word(DisconnectKind.entries), this["seconds"]?.orNull { real() })
            }
    }
}
