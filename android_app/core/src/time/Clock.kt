package org.ondeviceprofiler.core

/** What measuring code needs from time. */
public interface Clock {
    /** Nanoseconds since boot, sleep included. */
    public fun bootNs(): Long

    /** Nanoseconds since 1970-01-01 UTC. */
    public fun wallNs(): Long

    /** Wait so long. */
    public fun sleepNs(durationNs: Long)
}
