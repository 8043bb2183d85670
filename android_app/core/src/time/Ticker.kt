package org.ondeviceprofiler.core

/** What is due later: on threads in reality, within the clock's sleep where time is driven. */
public interface Ticker {
    /** Run an action now and then after each interval, until it is stopped; never twice at once. */
    public fun every(intervalNs: Long, action: () -> Unit): Ticking

    /** Run an action once, after a delay, unless it is stopped before. */
    public fun after(delayNs: Long, action: () -> Unit): Ticking
}
