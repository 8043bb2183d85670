package org.ondeviceprofiler.virtual

import org.ondeviceprofiler.core.Clock
import org.ondeviceprofiler.core.Engine
import org.ondeviceprofiler.core.Identity
import org.ondeviceprofiler.core.Probes
import org.ondeviceprofiler.core.Shell
import org.ondeviceprofiler.core.Ticker
import org.ondeviceprofiler.core.Workload

/** An app of a virtual phone: nothing is inferred here, and the model says what it would have cost. */
internal class VirtualShell(private val control: ControlChannel) : Shell {
    private val driven = DrivenClock(control)

    override val identity: Identity =
        Identity(
            platform = "android",
            pid = ProcessHandle.current().pid(),
            engines = mapOf("onnxruntime" to "synthetic", "executorch" to "synthetic"),
            virtual = true,
            synthetic = true,
        )

    override val clock: Clock get() = driven
    override val ticker: Ticker get() = driven
    override val workload: Workload = ModelledWorkload(control, driven)
    override val probes: Probes = ModelledProbes(control)

    override fun open(engine: String, threads: Int?): Engine = SyntheticEngine(control, driven)

    override fun around(work: () -> Unit) {
        driven.attach(identity.pid)
        try {
            work()
        } finally {
            driven.detach()
        }
    }
}
