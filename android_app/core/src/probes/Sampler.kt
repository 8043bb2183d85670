package org.ondeviceprofiler.core

/** Calls `read` at every interval of a ticker; samples wait until they are taken. */
internal class Sampler<S : Any>(
    private val ticker: Ticker,
    private val intervalNs: Long,
    private val read: () -> S?,
) {
    private val samples = ArrayList<S>()
    private var ticking: Ticking? = null

    /** Sample from now on. */
    fun resume() {
        if (ticking == null) ticking = ticker.every(intervalNs, ::look)
    }

    /** Sample no more until resumed. */
    fun pause() {
        ticking?.stop()
        ticking = null
    }

    /** Read once now, on the caller's thread: where something begins or ends. */
    fun look() {
        val sample = read() ?: return
        synchronized(samples) { samples.add(sample) }
    }

    /** Hand over what has gathered. */
    fun take(): List<S> =
        synchronized(samples) {
            val taken = samples.toList()
            samples.clear()
            taken
        }
}
