package org.ondeviceprofiler.core

/** A moment after which nested calls give up. */
internal class Deadline(seconds: Double, private val clock: Clock) {
    private val endNs = clock.bootNs() + nanoseconds(seconds)

    fun leftNs(): Long = maxOf(0, endNs - clock.bootNs())

    fun passed(): Boolean = leftNs() == 0L
}
