package org.ondeviceprofiler.core

import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

class ThreadTickerTest {
    @Test
    fun `an action is run again and again, on another thread`() {
        val calls = CountDownLatch(3)
        val here = Thread.currentThread()
        val ticking = ThreadTicker().every(1000) { if (Thread.currentThread() !== here) calls.countDown() }
        assertTrue(calls.await(20, TimeUnit.SECONDS))
        ticking.stop()
    }

    @Test
    fun `a delayed action is run once, and not at all where it was stopped`() {
        val calls = java.util.concurrent.ConcurrentLinkedQueue<String>()
        val done = CountDownLatch(1)
        val ticker = ThreadTicker()
        ticker.after(3600 * NS_PER_S) { calls.add("stopped") }.stop()
        ticker.after(0) {
            calls.add("run")
            done.countDown()
        }
        assertTrue(done.await(20, TimeUnit.SECONDS))
        assertEquals(listOf("run"), calls.toList())
    }

    @Test
    fun `what is stopped while it runs is not begun again`() {
        var ticking: Ticking? = null
        val begun = CountDownLatch(1)
        val calls = java.util.concurrent.atomic.AtomicInteger()
        val set = CountDownLatch(1)
        ticking = ThreadTicker().every(0) {
            set.await()
            calls.incrementAndGet()
            ticking?.stop()
            begun.countDown()
        }
        set.countDown()
        assertTrue(begun.await(20, TimeUnit.SECONDS))
        assertEquals(1, calls.get())
    }
}
