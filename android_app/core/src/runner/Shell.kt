package org.ondeviceprofiler.core

/** What a program around the core brings: an app on a phone, or a virtual phone's stand-in for one. */
public interface Shell {
    /** What this runner says of itself. */
    public val identity: Identity

    /** Time, while the job runs. */
    public val clock: Clock

    /** What is due later, on the same time. */
    public val ticker: Ticker

    /** The canary's work. */
    public val workload: Workload

    /** What can be read of the system. */
    public val probes: Probes

    /** Open one of the engines that `identity` names. Throws EngineFailure. */
    public fun open(engine: String, threads: Int?): Engine

    /** Do the work of a job, with what it needs around it: wake locks, a foreground service, a driven clock. */
    public fun around(work: () -> Unit): Unit = work()
}
