package org.ondeviceprofiler.core

/** The runner's memory before it touches the model: a baseline beside the peak, never subtracted. */
internal data class Idle(override val stamp: Stamp, val memory: MemoryReading) : Event {
    override fun toJson(): JsonObject = jsonOf(*stamp.members("idle"), "memory" to memory)

    companion object {
        fun of(fields: Fields): Idle = Idle(Stamp.of(fields), MemoryReading.read(fields.need("memory")))
    }
}
