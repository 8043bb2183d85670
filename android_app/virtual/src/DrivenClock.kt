package org.ondeviceprofiler.virtual

import java.util.PriorityQueue
import org.ondeviceprofiler.core.Clock
import org.ondeviceprofiler.core.JsonObject
import org.ondeviceprofiler.core.Ticker
import org.ondeviceprofiler.core.Ticking

/**
 * The model's time, which stands still unless this runner moves it on: computing costs nothing, only `sleepNs` does.
 *
 * What a ticker was asked for falls due inside `sleepNs`, at its exact moment, on the sleeper's thread. One thread may
 * sleep; any may ask for ticks.
 */
internal class DrivenClock(private val control: ControlChannel) : Clock, Ticker {
    private val due = PriorityQueue<Tick>(compareBy({ it.atNs }, { it.number }))
    private var waiting = ArrayList<Tick>()
    private var attached = false
    private var count = 0L

    @Volatile
    private var bootNs = 0L

    @Volatile
    private var wallNs = 0L

    /** Take the time over from the model. */
    fun attach(pid: Long) {
        take(control.ask("attach", "pid" to pid))
        synchronized(due) {
            attached = true
            // What was asked for before counts from now.
            waiting.forEach { due.add(it.also { tick -> tick.atNs += bootNs }) }
            waiting = ArrayList()
        }
    }

    /** Let the model's time run freely again; what is due later is forgotten. */
    fun detach() {
        synchronized(due) {
            attached = false
            due.clear()
        }
        control.ask("detach")
    }

    override fun bootNs(): Long = bootNs

    override fun wallNs(): Long = wallNs

    override fun sleepNs(durationNs: Long) {
        val endNs = bootNs + durationNs
        while (true) {
            val tick = nextUntil(endNs) ?: break
            if (tick.stopped) continue
            advance(tick.atNs)
            tick.action()
            tick.intervalNs?.let { schedule(tick, tick.atNs + it) }
        }
        advance(endNs)
    }

    override fun every(intervalNs: Long, action: () -> Unit): Ticking {
        action()
        return added(Tick(intervalNs, intervalNs, number(), action))
    }

    override fun after(delayNs: Long, action: () -> Unit): Ticking = added(Tick(delayNs, null, number(), action))

    private fun added(tick: Tick): Ticking {
        synchronized(due) {
            if (attached) schedule(tick, bootNs + tick.atNs) else waiting.add(tick)
        }
        return Ticking { tick.stopped = true }
    }

    private fun number(): Long = synchronized(due) { count++ }

    private fun schedule(tick: Tick, atNs: Long) {
        synchronized(due) {
            tick.atNs = atNs
            if (!tick.stopped) due.add(tick)
        }
    }

    private fun nextUntil(endNs: Long): Tick? =
        synchronized(due) { if ((due.peek()?.atNs ?: Long.MAX_VALUE) <= endNs) due.poll() else null }

    private fun advance(toNs: Long) {
        if (toNs > bootNs) take(control.ask("advance", "boot_ns" to toNs))
    }

    private fun take(answer: JsonObject) {
        bootNs = answer.needInteger("boot_ns")
        wallNs = answer.needInteger("wall_ns")
    }
}
