package org.ondeviceprofiler.core

import org.junit.Assert.assertEquals
import org.junit.Test

class HashingWorkloadTest {
    /** Gives these times one after the other. */
    private class Script(private vararg val times: Long) : Clock {
        private var next = 0

        override fun bootNs(): Long = times[next++]

        override fun wallNs(): Long = 0

        override fun sleepNs(durationNs: Long) = Unit
    }

    @Test
    fun `the fastest round counts, since an interruption only lengthens one`() {
        assertEquals(40L, HashingWorkload(Script(0, 50, 60, 100, 200, 900)).fastestNs(3))
    }
}
