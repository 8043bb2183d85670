package org.ondeviceprofiler.core

/** Writes `begin` and `load` events while the interpreter works, and carries the cancel signal. */
internal class JobWatcher(
    private val journal: Journal,
    private val memory: MemoryGauge,
    private val cancelled: Signal,
) : Watcher {
    var phase: Phase = Phase.LOAD
    var iteration: Int? = null
    var stage: String? = null
        private set
    var component: String? = null

    override fun begin(stage: String, component: String?) {
        this.stage = stage
        this.component = component
        journal.append { Begin(it, phase, iteration, stage, component) }
        if (phase == Phase.LOAD) journal.sync()
    }

    override fun loaded(component: String, durationNs: Long) =
        journal.append { LoadDone(it, component, durationNs, memory.read()) }

    override fun check() {
        if (cancelled.isSet) throw Cancelled()
    }
}
