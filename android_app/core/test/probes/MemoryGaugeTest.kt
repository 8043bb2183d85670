package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Test

class MemoryGaugeTest {
    private val probes = FakeProbes()
    private val gauge = MemoryGauge(probes, FakeClock())

    private fun status(text: String) {
        probes.files["/proc/self/status"] = text
    }

    @Test
    fun `the parts of a status are read, and only those that are there`() {
        val text = "Name:\tapp: x\nVmHWM:\t  300 kB\nVmRSS:\t 200 kB\nRssAnon:\t 150 kB\nRssFile:\t 50 kB\nVmSwap:\t0 kB\n"
        assertEquals(ProcessStatus(200 * 1024, 300 * 1024, 150 * 1024, 50 * 1024, 0), ProcessStatus.parse(text))
        val broken = "VmHWM:\t300 MB\nVmRSS:\t-2 kB\nRssAnon: kB\nRssFile:\t9999999999999999999 kB\nVmSwap\n"
        assertEquals(ProcessStatus(null, null, null, null, null), ProcessStatus.parse(broken))
    }

    @Test
    fun `the peak counts swapped pages of every sample, and never sinks`() {
        assertEquals(2000L * 1024, gauge.read().peakBytes)
        status("VmHWM:\t2000 kB\nVmRSS:\t1900 kB\nVmSwap:\t600 kB\n")
        assertEquals(MemorySample(1_000_000, 1900 * 1024, 600 * 1024), gauge.sample())
        status("VmHWM:\t2000 kB\nVmRSS:\t10 kB\nVmSwap:\t0 kB\n")
        val reading = gauge.read()
        assertEquals(2500L * 1024, reading.peakBytes)
        assertEquals(10L * 1024, reading.residentBytes)
        assertNull(reading.reason)
    }

    @Test
    fun `without the kernel's mark there is no peak, and a reason`() {
        status("VmRSS:\t10 kB\n")
        val reading = gauge.read()
        assertNull(reading.peakBytes)
        assertEquals("the kernel gives no VmHWM", reading.reason)
    }

    @Test
    fun `a status that cannot be read is missing with its reason, never zero`() {
        probes.files.clear()
        assertNull(gauge.sample())
        assertEquals("cannot read /proc/self/status: No such file or directory", gauge.read().reason)
        assertNull(gauge.read().residentBytes)
    }
}
