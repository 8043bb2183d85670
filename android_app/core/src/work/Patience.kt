package org.ondeviceprofiler.core

/** Waits: `check` throws where the job is to stop, `waiting` hears why, and again every few seconds. */
internal class Patience(
    private val clock: Clock,
    private val check: () -> Unit,
    private val waiting: (String) -> Unit,
) {
    /** Wait for so long. Throws what `check` throws. */
    fun pause(seconds: Double, reason: String) {
        val deadline = Deadline(seconds, clock)
        var silence = Deadline(0.0, clock)
        while (!deadline.passed()) {
            check()
            if (silence.passed()) {
                waiting(reason)
                silence = Deadline(SIGN_OF_LIFE_S, clock)
            }
            clock.sleepNs(minOf(STEP_NS, maxOf(deadline.leftNs(), NS_PER_MS)))
        }
    }

    /** Wait until the device runs on its battery. Throws NotReady, at once where it cannot tell. */
    fun untilUnplugged(externalPower: () -> Boolean?) {
        val limit = Deadline(UNPLUG_TIMEOUT_S, clock)
        while (true) {
            val plugged =
                externalPower() ?: throw NotReady("not_ready: the device does not tell whether it is on external power")
            if (!plugged) return
            if (limit.passed()) {
                throw NotReady("not_ready: still on external power after ${shortly(UNPLUG_TIMEOUT_S)} s of waiting")
            }
            pause(LOOK_S, UNPLUG)
        }
    }

    private companion object {
        const val SIGN_OF_LIFE_S = 5.0
        const val STEP_NS = 50 * NS_PER_MS
        const val UNPLUG_TIMEOUT_S = 600.0
        const val LOOK_S = 1.0
        const val UNPLUG = "unplug the device: the timed images are to run on its battery"
    }
}

/** Write whole seconds without a fraction. */
internal fun shortly(seconds: Double): String =
    if (seconds == Math.rint(seconds) && seconds < 1e6) seconds.toLong().toString() else seconds.toString()
