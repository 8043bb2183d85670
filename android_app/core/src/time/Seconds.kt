package org.ondeviceprofiler.core

internal const val NS_PER_S: Long = 1_000_000_000
internal const val NS_PER_MS: Long = 1_000_000

/** Return whole nanoseconds; more than 64 bits hold becomes the most they do. */
internal fun nanoseconds(seconds: Double): Long = Math.round(seconds * NS_PER_S)
