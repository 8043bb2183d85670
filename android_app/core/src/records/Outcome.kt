package org.ondeviceprofiler.core

/** How a job ended. */
internal enum class Outcome(override val word: String) : Word {
    COMPLETED("completed"),
    FAILED("failed"),
    ABORTED("aborted"),
    INTERRUPTED("interrupted"),
    REFUSED("refused"),
}
