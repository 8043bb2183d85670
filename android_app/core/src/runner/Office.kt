package org.ondeviceprofiler.core

import java.io.IOException

/**
 * What connection and work share: the job taken, its journal, and the cancel signal; and what happens when the host
 * goes away. `leave` ends the process at once.
 */
internal class Office(
    val files: DeviceFiles,
    val shell: Shell,
    private val leave: (Int) -> Unit,
) {
    val cancelled = Signal()
    val released = Signal()

    /** A job was taken, or none will be. */
    val settled = Signal()
    private var host: Line? = null
    private var timers = emptyList<Ticking>()

    @Volatile
    var assignment: Assignment? = null
        private set

    /** Open the job's journal and tell whether this runner was free for one. Throws IOException. */
    fun take(job: Job): Boolean =
        synchronized(settled) {
            if (assignment != null) return false
            val journal = Journal(files.storage.resolve(Protocol.JOURNAL_FILE), job.jobId, shell.clock)
            assignment = Assignment(job, journal)
            settled.set()
            true
        }

    /** Take a connection for the host's, in the place of any before, and call off what its end set going. */
    fun hostCame(line: Line) {
        val former = synchronized(this) {
            callOff()
            host.also { host = line }
        }
        former?.hangUp()
    }

    /**
     * Obey the job's `on_disconnect`, unless the host talks over another connection already.
     *
     * A host that comes back in time finds the work going on; one that never handed over a job is not waited for.
     */
    @Synchronized
    fun hostWent(line: Line) {
        if (host !== line) return
        host = null
        val rule = assignment?.job?.onDisconnect
        when {
            rule == null -> release()
            !released.isSet && rule.kind == DisconnectKind.STOP_AFTER -> stopAfter(rule.seconds ?: 0.0)
        }
    }

    /** Leave where there is neither a host nor a job. */
    @Synchronized
    fun leaveIfIdle() {
        if (host == null && assignment == null) release()
    }

    /** Wait for no host any more. */
    fun release() {
        released.set()
        settled.set()
    }

    /** Hang up on the host, as the process ends. */
    @Synchronized
    fun close() {
        callOff()
        host?.hangUp()
    }

    /** A call into the runtime cannot be stopped: if it does not return, the process leaves all the same. */
    private fun stopAfter(seconds: Double) {
        timers = listOf(
            shell.ticker.after(nanoseconds(seconds)) { cancelled.set() },
            shell.ticker.after(nanoseconds(2 * seconds + 1)) { leave(Protocol.EXIT_HOST_GONE) },
        )
    }

    private fun callOff() {
        timers.forEach(Ticking::stop)
        timers = emptyList()
    }
}
