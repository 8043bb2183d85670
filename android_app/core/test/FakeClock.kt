package org.ondeviceprofiler.core

import java.util.concurrent.Semaphore
import java.util.concurrent.TimeUnit
import org.junit.Assert.assertTrue

/** A clock that moves only when it is slept on; ticks fall due inside the sleep. */
internal class FakeClock(private var bootNs: Long = 1_000_000) : Clock, Ticker {
    private class Tick(var atNs: Long, val intervalNs: Long?, val action: () -> Unit) {
        var stopped = false
    }

    private val ticks = ArrayList<Tick>()
    private val added = Semaphore(0)

    @Synchronized
    override fun bootNs(): Long = bootNs

    override fun wallNs(): Long = 1_700_000_000L * NS_PER_S + bootNs()

    override fun sleepNs(durationNs: Long) {
        val endNs = bootNs() + durationNs
        while (true) {
            val tick = next(endNs) ?: break
            synchronized(this) { bootNs = tick.atNs }
            if (!tick.stopped) tick.action()
            tick.intervalNs?.takeIf { !tick.stopped }?.let { add(Tick(tick.atNs + it, it, tick.action)) }
        }
        synchronized(this) { bootNs = endNs }
    }

    override fun every(intervalNs: Long, action: () -> Unit): Ticking {
        action()
        val tick = add(Tick(bootNs() + intervalNs, intervalNs, action))
        return Ticking { synchronized(this) { ticks.removeAll { it.action === tick.action } } }
    }

    override fun after(delayNs: Long, action: () -> Unit): Ticking {
        val tick = add(Tick(bootNs() + delayNs, null, action))
        added.release()
        return Ticking { synchronized(this) { tick.stopped = true } }
    }

    /** Wait until another thread has asked for so many delayed actions more. */
    fun awaitDelayed(count: Int) = assertTrue("nobody asked for a delay", added.tryAcquire(count, 20, TimeUnit.SECONDS))

    @Synchronized
    private fun add(tick: Tick): Tick = tick.also(ticks::add)

    @Synchronized
    private fun next(endNs: Long): Tick? = ticks.filter { it.atNs <= endNs }.minByOrNull { it.atNs }?.also(ticks::remove)
}
