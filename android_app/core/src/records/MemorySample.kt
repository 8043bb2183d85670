package org.ondeviceprofiler.core

/** One reading of resident memory, and of swapped where the system swaps: a lower bound of the peak around it. */
internal data class MemorySample(val deviceBootNs: Long, val residentBytes: Long, val swappedBytes: Long?) : Writable {
    override fun toJson(): JsonObject =
        jsonOf("device_boot_ns" to deviceBootNs, "resident_bytes" to residentBytes, "swapped_bytes" to swappedBytes)

    companion object {
        fun read(value: Value): MemorySample =
            value.record {
                MemorySample(
                    need("device_boot_ns").integer(),
                    need("resident_bytes").integer(),
                    this["swapped_bytes"]?.orNull { integer() },
                )
            }
    }
}
