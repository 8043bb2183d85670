package org.ondeviceprofiler.core

/** The device idled on purpose between two moments, the model loaded: what it draws without work. */
internal data class Rest(override val stamp: Stamp, val startBootNs: Long, val endBootNs: Long) : Event {
    override fun toJson(): JsonObject =
        jsonOf(*stamp.members("rest"), "start_boot_ns" to startBootNs, "end_boot_ns" to endBootNs)

    companion object {
        fun of(fields: Fields): Rest =
            Rest(Stamp.of(fields), fields.need("start_boot_ns").integer(), fields.need("end_boot_ns").integer())
    }
}
