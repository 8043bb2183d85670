package org.ondeviceprofiler.core

/** The readiness gate did not open before its deadline. */
internal class NotReady(message: String) : RunnerFailure(message)
