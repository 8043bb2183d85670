package org.ondeviceprofiler.core

/** How timed images follow each other. */
internal enum class MeasurementKind(override val word: String) : Word {
    SPACED("spaced"),
    BURST("burst"),
    SUSTAINED("sustained"),
}
