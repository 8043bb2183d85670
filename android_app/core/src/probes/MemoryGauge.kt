package org.ondeviceprofiler.core

/** Reads this process's memory; its peak is the largest of the kernel's mark and all samples, swapped pages too. */
internal class MemoryGauge(private val probes: Probes, private val clock: Clock) {
    private var largestBytes = 0L

    /** Read memory for the trace; null where it cannot be read. */
    @Synchronized
    fun sample(): MemorySample? {
        val status = probes.read(STATUS).text?.let(ProcessStatus::parse) ?: return null
        val resident = status.residentBytes ?: return null
        note(status)
        return MemorySample(clock.bootNs(), resident, status.swappedBytes)
    }

    /** Read the lifetime peak and the parts of what is held now; a peak is never below one read before. */
    @Synchronized
    fun read(): MemoryReading {
        val reading = probes.read(STATUS)
        val status = reading.text?.let(ProcessStatus::parse) ?: return missing(reading.reason)
        note(status)
        return MemoryReading(
            status.residentBytes,
            if (status.markedBytes == null) null else largestBytes,
            status.anonymousBytes,
            status.fileBackedBytes,
            status.swappedBytes,
            DEFINITION,
            if (status.markedBytes == null) "the kernel gives no VmHWM" else null,
        )
    }

    /** The kernel's mark knows nothing of swapped pages, and lags behind, as it counts lazily. */
    private fun note(status: ProcessStatus) {
        largestBytes = maxOf(largestBytes, status.markedBytes ?: 0, status.heldBytes ?: 0)
    }

    private fun missing(reason: String?): MemoryReading =
        MemoryReading(null, null, null, null, null, DEFINITION, "cannot read $STATUS: ${reason ?: "nothing there"}")

    private companion object {
        const val STATUS = "/proc/self/status"
        const val DEFINITION = "the largest of Linux VmHWM and all samples of VmRSS + VmSwap of the process"
    }
}
