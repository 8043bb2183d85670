package org.ondeviceprofiler.core

/** The job waits on purpose before its next image, and why; told again every few seconds as a sign of life. */
internal data class Waiting(override val stamp: Stamp, val reason: String) : Event {
    override fun toJson(): JsonObject = jsonOf(*stamp.members("waiting"), "reason" to reason)

    companion object {
        fun of(fields: Fields): Waiting = Waiting(Stamp.of(fields), fields.need("reason").text())
    }
}
