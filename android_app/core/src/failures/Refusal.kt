package org.ondeviceprofiler.core

/** What the job, its bundle or its inputs say cannot be done. */
internal open class Refusal(message: String, cause: Throwable? = null) : RunnerFailure(message, cause)
