package org.ondeviceprofiler.core

/** Ticks on threads of their own, which wait as the operating system does. */
public class ThreadTicker : Ticker {
    override fun every(intervalNs: Long, action: () -> Unit): Ticking =
        started(TickingThread(0) { action().let { intervalNs } })

    override fun after(delayNs: Long, action: () -> Unit): Ticking =
        started(TickingThread(delayNs) { action().let { null } })

    private fun started(thread: TickingThread): Ticking {
        Thread(thread, "ticker").apply { isDaemon = true }.start()
        return thread
    }
}
