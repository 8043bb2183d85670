package org.ondeviceprofiler.core

import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit

/** Something that happens once, and that threads may wait for. */
internal class Signal {
    private val latch = CountDownLatch(1)

    val isSet: Boolean get() = latch.count == 0L

    fun set() = latch.countDown()

    fun await() = latch.await()

    /** Wait at most so long; tell whether it happened. */
    fun await(milliseconds: Long): Boolean = latch.await(milliseconds, TimeUnit.MILLISECONDS)
}
