package org.ondeviceprofiler.core

/** So many rounds. */
internal data class OverCount(val count: Long) : LoopOver {
    override val written: Any get() = count
}
