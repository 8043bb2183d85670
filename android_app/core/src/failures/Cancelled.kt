package org.ondeviceprofiler.core

/** The host asked for a stop, or went away. */
internal class Cancelled : RunnerFailure("cancelled")
