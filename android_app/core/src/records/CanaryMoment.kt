package org.ondeviceprofiler.core

/** When the canary ran: before anything was loaded, or between images. */
internal enum class CanaryMoment(override val word: String) : Word {
    COOL("cool"),
    BETWEEN("between"),
}
