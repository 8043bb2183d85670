package org.ondeviceprofiler.core

/** Samples both gauges while it is not paused; what has gathered goes into the journal between iterations. */
internal class Tracer(private val journal: Journal, sampling: Sampling, shell: Shell) {
    val memory = MemoryGauge(shell.probes, shell.clock)
    val environment = EnvironmentGauge(shell.probes, shell.clock)
    private val memorySampler = Sampler(shell.ticker, interval(sampling.memoryIntervalMs), memory::sample)
    private val environmentSampler =
        Sampler(shell.ticker, interval(sampling.environmentIntervalMs), environment::sample)

    /** Sample from now on. */
    fun resume() {
        memorySampler.resume()
        environmentSampler.resume()
    }

    /** Sample no more until resumed. */
    fun pause() {
        memorySampler.pause()
        environmentSampler.pause()
    }

    /** Read the slow gauges once now, so that a short phase has readings of its own. */
    fun look() = environmentSampler.look()

    /** Write what has gathered; never called inside a timed window. Throws IOException. */
    fun flush() {
        val memory = memorySampler.take()
        var slow = environmentSampler.take()
        if (memory.isEmpty() && slow.isEmpty()) return
        for (part in memory.chunked(SAMPLES_PER_EVENT).ifEmpty { listOf(emptyList()) }) {
            val environment = slow.take(SLOW_SAMPLES_PER_EVENT)
            slow = slow.drop(SLOW_SAMPLES_PER_EVENT)
            append(part, environment)
        }
        for (part in slow.chunked(SLOW_SAMPLES_PER_EVENT)) append(emptyList(), part)
    }

    /** Stop for good and write what is left. Throws IOException. */
    fun end() {
        pause()
        flush()
    }

    private fun append(memory: List<MemorySample>, slow: List<EnvironmentSample>) =
        journal.append { Trace(it, memory, slow, environment.missing) }

    private companion object {
        // Keep a line well below the protocol's 1 MiB.
        const val SAMPLES_PER_EVENT = 4000
        const val SLOW_SAMPLES_PER_EVENT = 400

        fun interval(milliseconds: Long): Long = maxOf(1, milliseconds) * NS_PER_MS
    }
}
