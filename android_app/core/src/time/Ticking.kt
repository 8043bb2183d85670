package org.ondeviceprofiler.core

/** What a ticker was asked for. */
public fun interface Ticking {
    /** Begin no more actions. */
    public fun stop()
}
