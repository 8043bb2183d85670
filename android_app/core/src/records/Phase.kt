package org.ondeviceprofiler.core

/** What a part of a job is for. */
internal enum class Phase(override val word: String) : Word {
    LOAD("load"),
    COLD("cold"),
    WARMUP("warmup"),
    TIMED("timed"),
    OBSERVER("observer"),
}
