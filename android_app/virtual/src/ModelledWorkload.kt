package org.ondeviceprofiler.virtual

import org.ondeviceprofiler.core.Clock
import org.ondeviceprofiler.core.Workload

/** The canary as the model's processor would run it now. */
internal class ModelledWorkload(private val control: ControlChannel, private val clock: Clock) : Workload {
    override fun fastestNs(rounds: Int): Long {
        val durationNs = control.ask("canary", "rounds" to rounds).needInteger("duration_ns")
        clock.sleepNs(rounds * durationNs)
        return durationNs
    }
}
