package org.ondeviceprofiler.virtual

import org.junit.Assert.assertEquals
import org.junit.Test

class DrivenClockTest {
    @Test
    fun `time stands still unless it is slept on, and ticks fall due at their moments`() {
        StandInModel().use { model ->
            val clock = DrivenClock(model.channel())
            clock.attach(1)
            val ticks = ArrayList<String>()
            val ticking = clock.every(20) { ticks.add("a${clock.bootNs()}") }
            clock.after(30) { ticks.add("once${clock.bootNs()}") }
            clock.sleepNs(50)
            ticking.stop()
            clock.sleepNs(50)
            assertEquals(listOf("a1000", "a1020", "once1030", "a1040"), ticks)
            assertEquals(listOf(1020L, 1030L, 1040L, 1050L, 1100L), model.advances)
            assertEquals(1105L, clock.wallNs())
        }
    }

    @Test
    fun `what is asked for before time is driven counts from then`() {
        StandInModel().use { model ->
            val clock = DrivenClock(model.channel())
            val ticks = ArrayList<Long>()
            clock.after(40) { ticks.add(clock.bootNs()) }
            clock.after(10) { ticks.add(clock.bootNs()) }.stop()
            clock.attach(1)
            clock.sleepNs(100)
            assertEquals(listOf(1040L), ticks)
        }
    }

    @Test
    fun `an action may stop its own ticks`() {
        StandInModel().use { model ->
            val clock = DrivenClock(model.channel()).also { it.attach(1) }
            var count = 0
            lateinit var ticking: org.ondeviceprofiler.core.Ticking
            ticking = clock.every(10) { if (count++ == 2) ticking.stop() }
            clock.sleepNs(100)
            assertEquals(3, count)
        }
    }
}
