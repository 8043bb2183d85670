package org.ondeviceprofiler.core

/** The runner's own memory; `definition` names the source of `peakBytes`. */
internal data class MemoryReading(
    val residentBytes: Long?,
    val peakBytes: Long?,
    val anonymousBytes: Long?,
    val fileBackedBytes: Long?,
    val swappedBytes: Long?,
    val definition: String,
    val reason: String? = null,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "resident_bytes" to residentBytes,
            "peak_bytes" to peakBytes,
            "anonymous_bytes" to anonymousBytes,
            "file_backed_bytes" to fileBackedBytes,
            "swapped_bytes" to swappedBytes,
            "definition" to definition,
            "reason" to reason,
        )

    companion object {
        fun read(value: Value): MemoryReading =
            value.record {
                MemoryReading(
                    need("resident_bytes").orNull { integer() },
                    need("peak_bytes").orNull { integer() },
                    need("anonymous_bytes").orNull { integer() },
                    need("file_backed_bytes").orNull { integer() },
                    need("swapped_bytes").orNull { integer() },
                    need("definition").text(),
                    this["reason"]?.orNull { text() },
                )
            }
    }
}
