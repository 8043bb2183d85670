package org.ondeviceprofiler.core

/** Every way in which a job ends before its end. */
public sealed class RunnerFailure(message: String, cause: Throwable? = null) : Exception(message, cause)
