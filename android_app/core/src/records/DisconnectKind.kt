package org.ondeviceprofiler.core

/** What a runner does when its host goes away. */
internal enum class DisconnectKind(override val word: String) : Word {
    STOP_AFTER("stop_after_s"),
    FINISH_THEN_EXIT("finish_then_exit"),
}
