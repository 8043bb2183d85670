package org.ondeviceprofiler.core

internal const val NS_PER_S: Long = 1_000_000_000
internal const val NS_PER_MS: Long = 1_000_000

private const val AGES_NS = Long.MAX_VALUE / 4

/** Return whole nanoseconds; what is longer than a lifetime is cut, so that a clock's time may be added. */
internal fun nanoseconds(seconds: Double): Long = Math.round(seconds * NS_PER_S).coerceIn(-AGES_NS, AGES_NS)
