package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Assert.assertTrue
import org.junit.Test

class EnvironmentGaugeTest {
    private val clock = FakeClock()
    private val probes = FakeProbes()

    private fun zone(number: Int, type: String, temp: String) {
        probes.files["/sys/class/thermal/thermal_zone$number/type"] = "$type\n"
        probes.files["/sys/class/thermal/thermal_zone$number/temp"] = "$temp\n"
    }

    @Test
    fun `the hottest processor or skin sensor counts, beyond gaps in the numbers`() {
        zone(0, "battery", "55000")
        zone(1, "cpu-1-0-usr", "41000")
        zone(4, "VIRTUAL-SKIN", "42500")
        zone(5, "BIG", "0")
        zone(6, "pa-therm0", "60000")
        assertEquals(42_500L, EnvironmentGauge(probes, clock).sample().temperatureMillicelsius)
    }

    @Test
    fun `where zones are denied the battery decides readiness, and stays apart`() {
        probes.battery = probes.battery.copy(temperatureTenths = 312)
        val gauge = EnvironmentGauge(probes, clock)
        val sample = gauge.sample()
        assertNull(sample.temperatureMillicelsius)
        assertEquals(31_200L, sample.batteryTemperatureMillicelsius)
        assertEquals(31_200L, gauge.readinessMillicelsius())
        assertTrue(gauge.missing.getValue("temperature_millicelsius").startsWith("cannot read /sys/class/thermal/thermal_zone0"))
    }

    @Test
    fun `a battery's number that is no reading is missing with what the system said`() {
        probes.battery = BatteryReading(-412, 2_900_000, 4, 293, 57, 100, 0)
        val gauge = EnvironmentGauge(probes, clock)
        val sample = gauge.sample()
        assertEquals(-412L, sample.batteryCurrentRaw)
        assertNull(sample.batteryVoltageMillivolts)
        assertEquals("voltage 4 is in whole volts: too coarse", gauge.missing["battery_voltage_millivolts"])
    }

    @Test
    fun `a headroom that is no number is missing`() {
        probes.thermal = ThermalReading(3, Double.NaN)
        val gauge = EnvironmentGauge(probes, clock)
        val sample = gauge.sample()
        assertEquals(3L, sample.thermalStatus)
        assertNull(sample.thermalHeadroom)
        assertTrue("thermal_headroom" in gauge.missing)
        probes.thermal = ThermalReading(3, 0.5)
        gauge.sample()
        assertTrue("thermal_headroom" !in gauge.missing)
    }

    @Test
    fun `clocks are those of the fastest cores`() {
        for ((policy, most) in listOf(0 to "1800000", 4 to "2400000", 7 to "3100000")) {
            val folder = "/sys/devices/system/cpu/cpufreq/policy$policy"
            probes.files["$folder/cpuinfo_max_freq"] = most
            probes.files["$folder/scaling_max_freq"] = if (policy == 7) "2200000\n" else most
            probes.files["$folder/scaling_cur_freq"] = "${1_000_000 + policy}"
        }
        val sample = EnvironmentGauge(probes, clock).sample()
        assertEquals(2_200_000L, sample.cpuFrequencyLimitKhz)
        assertEquals(1_000_007L, sample.cpuFrequencyKhz)
    }

    @Test
    fun `own work is told in percent of one core`() {
        fun stat(ticks: Int) {
            probes.files["/proc/self/stat"] = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 $ticks 5 0 0"
        }
        stat(100)
        val gauge = EnvironmentGauge(probes, clock)
        assertNull(gauge.sample().ownCpuPercent)
        clock.sleepNs(NS_PER_S)
        stat(250)
        assertEquals(150.0, gauge.sample().ownCpuPercent ?: 0.0, 1e-9)
        assertTrue("own_cpu_percent" !in gauge.missing)
    }

    @Test
    fun `every gauge without a reading says why`() {
        val gauge = EnvironmentGauge(probes, clock)
        val empty = gauge.sample().toJson().members.filterValues { it == JsonNull }.keys
        assertEquals(empty, gauge.missing.keys)
    }
}
