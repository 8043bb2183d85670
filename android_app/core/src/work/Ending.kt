package org.ondeviceprofiler.core

import java.io.IOException

/** How a job ended, and why where it did not complete. */
internal class Ending(val outcome: Outcome, val reason: String? = null) {
    companion object {
        /** Say what an error means for the job. */
        fun of(error: Throwable): Ending =
            when (error) {
                is RunnerFailure -> ofFailure(error)
                is OutOfMemoryError -> Ending(Outcome.FAILED, "out_of_memory: the runner could not allocate")
                is IOException -> Ending(Outcome.ABORTED, "storage: ${reasonOf(error)}, on the device")
                else -> Ending(Outcome.FAILED, "runner_error: ${error.javaClass.simpleName}: ${error.message}")
            }

        private fun ofFailure(failure: RunnerFailure): Ending =
            when (failure) {
                is Cancelled -> Ending(Outcome.INTERRUPTED, "cancelled")
                is NotReady -> Ending(Outcome.ABORTED, failure.message)
                is EngineFailure -> Ending(Outcome.FAILED, "${failure.reason.word}: ${failure.message}")
                is BrokenImage -> Ending(Outcome.FAILED, "broken_image: ${failure.message}")
                is Refusal -> Ending(Outcome.REFUSED, failure.message)
            }
    }
}
