package org.ondeviceprofiler.core

/** A small workload of the runner's own: when it slows down the processor did, whatever the model does. */
public fun interface Workload {
    /** Do so many rounds and return the fastest one's time in ns. */
    public fun fastestNs(rounds: Int): Long
}
