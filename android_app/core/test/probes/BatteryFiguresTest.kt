package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test

class BatteryFiguresTest {
    private val honest = BatteryReading(-412_000, 2_900_000, 4012, 293, 57, 100, 0)

    @Test
    fun `what is documented is taken as it is`() {
        val figures = BatteryFigures(honest)
        assertEquals(57.0, figures.percent ?: 0.0, 0.0)
        assertEquals(-412_000L, figures.currentRaw)
        assertEquals(4012L, figures.voltageMillivolts)
        assertEquals(29_300L, figures.temperatureMillicelsius)
        assertEquals(2_900_000L, figures.chargeMicroamperehours)
        assertEquals(false, figures.external)
        assertEquals(true, BatteryFigures(honest.copy(plugged = 4)).external)
    }

    @Test
    fun `volts are told by what a cell can have`() {
        assertEquals(4012L, BatteryFigures(honest.copy(voltageMillivolts = 4_012_345)).voltageMillivolts)
        val words = listOf(0L, -4012L, 400L, 40_123_456L).associateWith { "impossible" } + (4L to "in whole volts: too coarse")
        for ((value, reason) in words) {
            val figures = BatteryFigures(honest.copy(voltageMillivolts = value))
            assertNull(figures.voltageMillivolts)
            assertTrue(figures.reason("battery_voltage_millivolts"), reason in figures.reason("battery_voltage_millivolts"))
        }
    }

    @Test
    fun `a temperature in an unknown unit is no reading`() {
        assertEquals(-31_00L, BatteryFigures(honest.copy(temperatureTenths = -31)).temperatureMillicelsius)
        for (value in listOf(0L, 27L, -20L, 27_000L)) {
            val figures = BatteryFigures(honest.copy(temperatureTenths = value))
            assertNull(figures.temperatureMillicelsius)
            assertTrue("temperature $value" in figures.reason("battery_temperature_millicelsius"))
        }
    }

    @Test
    fun `the least number of either width, and impossible charges, are missing`() {
        val figures = BatteryFigures(honest.copy(currentNow = Int.MIN_VALUE.toLong(), chargeCounterMicroamperehours = Long.MIN_VALUE))
        assertNull(figures.currentRaw)
        assertNull(figures.chargeMicroamperehours)
        for (value in listOf(0L, 2900L, -2_900_000L)) {
            assertNull(BatteryFigures(honest.copy(chargeCounterMicroamperehours = value)).chargeMicroamperehours)
        }
        for (scale in listOf(0L, 50L)) assertNull(BatteryFigures(honest.copy(scale = scale)).percent)
    }

    @Test
    fun `without a battery there is no figure, and a reason`() {
        val figures = BatteryFigures(BatteryReading(null, null, null, null, null, null, null))
        assertNull(figures.percent)
        assertNull(figures.external)
        assertEquals("the system tells no such reading of its battery", figures.reason("battery_percent"))
    }
}
