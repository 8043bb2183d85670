package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Assert.assertNull
import org.junit.Test

class ReadinessTest {
    private var temperature: Long? = 30_000
    private var canaryNs = 1000L

    private fun readiness(coolNs: Long = 1000) = Readiness({ temperature }, { canaryNs }, coolNs)

    @Test
    fun `a machine as at the start is ready`() {
        val readiness = readiness()
        temperature = 33_000
        canaryNs = 1100
        assertNull(readiness.lack())
    }

    @Test
    fun `heat and a slow processor each hold it, and say so`() {
        val readiness = readiness()
        temperature = 35_250
        assertEquals("still at 35.3 °C, 5.3 °C above the start", readiness.lack())
        temperature = null
        canaryNs = 1500
        assertEquals("the processor is 50 % slower than when the job began", readiness.lack())
    }

    @Test
    fun `what cannot be read holds nothing up`() {
        canaryNs = 9000
        assertNull(readiness(coolNs = 0).lack())
        temperature = null
        canaryNs = 1000
        val unread = readiness()
        temperature = 90_000
        assertNull(unread.lack())
    }
}
