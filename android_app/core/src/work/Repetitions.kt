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
    check: () -> Unit,
    waiting: (String) -> Unit,
) {
    private val patience = Patience(clock, check, waiting)

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
        patience.pause(pauseS, "a pause of ${shortly(pauseS)} s")
        while (true) {
            val lack = readiness.lack() ?: return
            if (limit.passed()) throw NotReady("not_ready: $lack, after ${shortly(READY_TIMEOUT_S)} s of waiting")
            patience.pause(LEAST_LOOK_S, lack)
        }
    }

    private companion object {
        const val READY_TIMEOUT_S = 600.0
        const val LEAST_GAP_S = 0.5 // short pauses heat up phones that look idle
        const val LEAST_LOOK_S = 2.0
    }
}
