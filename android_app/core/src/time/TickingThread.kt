package org.ondeviceprofiler.core

import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit

/** Waits `delayNs`, acts, and goes on for as long as `act` names a next delay. */
internal class TickingThread(private val delayNs: Long, private val act: () -> Long?) : Runnable, Ticking {
    private val stopped = CountDownLatch(1)

    override fun run() {
        var delay: Long? = delayNs
        while (delay != null && !stopped.await(delay, TimeUnit.NANOSECONDS)) delay = act()
    }

    override fun stop() = stopped.countDown()
}
