package org.ondeviceprofiler.core

/** What `/proc/<pid>/status` says of a process's memory; a field that is not there stays missing. */
internal data class ProcessStatus(
    val residentBytes: Long?,
    val markedBytes: Long?,
    val anonymousBytes: Long?,
    val fileBackedBytes: Long?,
    val swappedBytes: Long?,
) {
    /** What the process holds now, in memory and swapped out of it. */
    val heldBytes: Long? get() = residentBytes?.let { it + (swappedBytes ?: 0) }

    companion object {
        private const val KIB = 1024L

        fun parse(text: String): ProcessStatus {
            val fields = text.lineSequence().filter { ':' in it }.associate {
                it.substringBefore(':') to it.substringAfter(':').split(' ', '\t').filter(String::isNotEmpty)
            }
            return ProcessStatus(
                bytes(fields["VmRSS"]),
                bytes(fields["VmHWM"]),
                bytes(fields["RssAnon"]),
                bytes(fields["RssFile"]),
                bytes(fields["VmSwap"]),
            )
        }

        private fun bytes(parts: List<String>?): Long? {
            if (parts == null || parts.size != 2 || parts[1] != "kB" || !parts[0].all { it in '0'..'9' }) return null
            return parts[0].toLongOrNull()?.takeIf { it <= Long.MAX_VALUE / KIB }?.times(KIB)
        }
    }
}
