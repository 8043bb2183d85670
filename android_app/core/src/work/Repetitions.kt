package org.ondeviceprofiler.core

/**
 * When the next timed image may begin, by the protocol of measurement.
 *
 * `check` throws where the job is to stop; `waiting` hears why there is a wait, and again every few seconds.
 */
internal class Repetitions(
    private val measurement: Measurement,
    private val repeats: Int,
    private val clock: Clock,
    private val readiness: Readiness,
    private val check: () -> Unit,
    private val waiting: (String) -> Unit,
) {
    /** Run `image` with each image's number once it may begin. Throws NotReady, and what `check` throws. */
    fun forEach(image: (Int) -> Unit) {
        if (measurement.kind == MeasurementKind.SUSTAINED) return forMinutes(measurement.minutes ?: 0.0, image)
        for (number in 0 until repeats) {
            if (measurement.kind == MeasurementKind.SPACED) waitUntilReady(measurement.gapS ?: 0.0)
            image(number)
        }
    }

    private fun forMinutes(minutes: Double, image: (Int) -> Unit) {
        val deadline = Deadline(minutes * 60, clock)
        var number = 0
        while (!deadline.passed()) {
            image(number)
            number += 1
        }
    }

    /** Wait for the gap, and longer until the machine is ready or the time is up. */
    private fun waitUntilReady(gapS: Double) {
        val limit = Deadline(gapS + READY_TIMEOUT_S, clock)
        val pauseS = maxOf(gapS, LEAST_GAP_S)
        pause(pauseS, "a pause of ${shortly(pauseS)} s")
        while (true) {
            val lack = readiness.lack() ?: return
            if (limit.passed()) throw NotReady("not_ready: $lack, after ${shortly(READY_TIMEOUT_S)} s of waiting")
            pause(LEAST_LOOK_S, lack)
        }
    }

    private fun pause(seconds: Double, reason: String) {
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

    /** Write whole seconds without a fraction. */
    private fun shortly(seconds: Double): String =
        if (seconds == Math.rint(seconds) && seconds < 1e6) seconds.toLong().toString() else seconds.toString()

    private companion object {
        const val READY_TIMEOUT_S = 600.0
        const val SIGN_OF_LIFE_S = 5.0
        const val LEAST_GAP_S = 0.5 // short pauses heat up phones that look idle
        const val LEAST_LOOK_S = 2.0
        const val STEP_NS = 50 * NS_PER_MS
    }
}
