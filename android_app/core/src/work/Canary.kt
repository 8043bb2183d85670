package org.ondeviceprofiler.core

/** Runs the workload now and then, and writes how long it took. */
internal class Canary(
    private val workload: Workload,
    private val journal: Journal,
    private val clock: Clock,
    private val intervalNs: Long,
) {
    private var lastNs: Long? = null

    /** The time before anything was loaded. */
    var coolNs: Long = 0
        private set

    /** Measure the machine before it works. */
    fun cool() {
        coolNs = run(CanaryMoment.COOL, COOL_ROUNDS)
    }

    /** Measure the machine between images. */
    fun between() {
        run(CanaryMoment.BETWEEN, BETWEEN_ROUNDS)
    }

    /** Measure the machine between images, unless it was measured a moment ago. */
    fun betweenIfDue() {
        val last = lastNs
        if (last == null || clock.bootNs() - last >= intervalNs) between()
    }

    /** Return the present time in ns without a word in the journal. */
    fun glance(): Long = workload.fastestNs(BETWEEN_ROUNDS)

    private fun run(moment: CanaryMoment, rounds: Int): Long {
        val durationNs = workload.fastestNs(rounds)
        lastNs = clock.bootNs()
        journal.append { CanaryDone(it, moment, durationNs) }
        return durationNs
    }

    private companion object {
        const val COOL_ROUNDS = 100
        const val BETWEEN_ROUNDS = 5
    }
}
