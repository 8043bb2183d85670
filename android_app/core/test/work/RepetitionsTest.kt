package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

class RepetitionsTest {
    private val clock = FakeClock(0)
    private val waits = ArrayList<String>()
    private var temperature = 30_000L

    private fun starts(kind: MeasurementKind, gapS: Double? = null, minutes: Double? = null, check: () -> Unit = {}): List<Long> {
        val readiness = Readiness({ temperature }, { 1000 }, 1000)
        val starts = ArrayList<Long>()
        val repetitions = Repetitions(Measurement(kind, gapS, minutes), 3, clock, readiness, check) { waits.add(it) }
        repetitions.forEach {
            assertEquals(starts.size, it)
            starts.add(clock.bootNs() / NS_PER_MS)
            clock.sleepNs(100 * NS_PER_MS)
        }
        return starts
    }

    @Test
    fun `a burst waits for nothing`() {
        assertEquals(listOf(0L, 100, 200), starts(MeasurementKind.BURST))
        assertTrue(waits.isEmpty())
    }

    @Test
    fun `spaced images wait for their gap, and tell it every few seconds`() {
        assertEquals(listOf(12_000L, 24_100, 36_200), starts(MeasurementKind.SPACED, gapS = 12.0))
        assertEquals(List(9) { "a pause of 12 s" }, waits)
    }

    @Test
    fun `even without a gap there is a short one`() {
        assertEquals(listOf(500L, 1100, 1700), starts(MeasurementKind.SPACED, gapS = 0.0))
        assertEquals("a pause of 0.5 s", waits.first())
    }

    @Test
    fun `a gate that never opens ends the job and says why`() {
        val readiness = Readiness({ temperature.also { temperature = 40_000 } }, { 1000 }, 1000)
        val repetitions = Repetitions(Measurement(MeasurementKind.SPACED, 2.0, null), 3, clock, readiness, {}) { waits.add(it) }
        val error = assertThrows(NotReady::class.java) { repetitions.forEach { } }
        assertEquals("not_ready: still at 40.0 °C, 10.0 °C above the start, after 600 s of waiting", error.message)
        assertTrue(clock.bootNs() in 602 * NS_PER_S..604 * NS_PER_S)
    }

    @Test
    fun `a gap of ages is waited for, not skipped`() {
        assertThrows(Cancelled::class.java) {
            starts(MeasurementKind.SPACED, gapS = 1e300) { if (clock.bootNs() >= 10 * NS_PER_S) throw Cancelled() }
        }
    }

    @Test
    fun `a cancelled job does not wait for its gap`() {
        assertThrows(Cancelled::class.java) {
            starts(MeasurementKind.SPACED, gapS = 60.0) { if (clock.bootNs() >= NS_PER_S) throw Cancelled() }
        }
        assertTrue(clock.bootNs() < 2 * NS_PER_S)
    }

    @Test
    fun `sustained goes on for its minutes whatever repeats says`() {
        assertEquals(60, starts(MeasurementKind.SUSTAINED, minutes = 0.1).size)
    }
}
