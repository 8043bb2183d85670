package org.ondeviceprofiler.core

/** A component is ready to run. */
internal data class LoadDone(
    override val stamp: Stamp,
    val component: String,
    val durationNs: Long,
    val memory: MemoryReading,
) : Event {
    override fun toJson(): JsonObject =
        jsonOf(*stamp.members("load"), "component" to component, "duration_ns" to durationNs, "memory" to memory)

    companion object {
        fun of(fields: Fields): LoadDone =
            LoadDone(
                Stamp.of(fields),
                fields.need("component").text(),
                fields.need("duration_ns").integer(),
                MemoryReading.read(fields.need("memory")),
            )
    }
}
