package org.ondeviceprofiler.core

/** What the interpreter tells while it works. */
internal interface Watcher {
    /** Hear that a load or a stage begins. */
    fun begin(stage: String, component: String?)

    /** Hear that a component is ready. */
    fun loaded(component: String, durationNs: Long)

    /** Throw Cancelled to stop before the next call. */
    fun check()
}
