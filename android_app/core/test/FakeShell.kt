package org.ondeviceprofiler.core

/** A shell whose every part a test can see. */
internal class FakeShell(
    override val clock: FakeClock = FakeClock(),
    val engine: Engine = FakeEngine(clock),
    override val probes: FakeProbes = FakeProbes(),
) : Shell {
    override val identity = Identity("android", 4711, mapOf("onnxruntime" to "1"), virtual = true, synthetic = true)
    override val ticker: Ticker get() = clock
    override val workload = Workload { rounds ->
        clock.sleepNs(rounds * 1000L)
        1000
    }

    override fun open(engine: String, threads: Int?): Engine = this.engine
}
