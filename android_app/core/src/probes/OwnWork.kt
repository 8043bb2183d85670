package org.ondeviceprofiler.core

/** Tells how much processor time this process took since the last look, in percent of one core. */
internal class OwnWork(private val probes: Probes, private val clock: Clock) {
    private var last = look()

    /** Whether the system tells this process its own time. */
    val readable: Boolean get() = last != null

    /** Why there is no reading, where there is none. */
    val reason: String get() = probes.read(STAT).reason ?: "$STAT is not as Linux writes it"

    /** Return the share since the last call; null where that was a moment ago, since the system counts ticks. */
    @Synchronized
    fun percent(): Double? {
        val now = look() ?: return null
        val before = last ?: now.also { last = it }
        if (now.atNs - before.atNs < LEAST_WINDOW_NS) return null
        last = now
        return 100.0 * (now.ticks - before.ticks) * NS_PER_TICK / (now.atNs - before.atNs)
    }

    private fun look(): Look? {
        // The second field is the program's name in brackets, which may hold anything.
        val fields = probes.read(STAT).text?.substringAfterLast(')')?.trim()?.split(' ') ?: return null
        val user = fields.getOrNull(USER)?.toLongOrNull() ?: return null
        val system = fields.getOrNull(USER + 1)?.toLongOrNull() ?: return null
        return Look(clock.bootNs(), user + system)
    }

    private class Look(val atNs: Long, val ticks: Long)

    private companion object {
        const val STAT = "/proc/self/stat"
        const val USER = 11 // utime, counted from the field behind the brackets
        const val NS_PER_TICK = 10_000_000L // Linux tells programs hundredths of a second on every architecture
        const val LEAST_WINDOW_NS = 100_000_000L
    }
}
