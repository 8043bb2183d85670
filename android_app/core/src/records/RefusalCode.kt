package org.ondeviceprofiler.core

/** Why a request is not served. */
internal enum class RefusalCode(override val word: String) : Word {
    PROTOCOL_VERSION("protocol_version"),
    TOKEN("token"),
    BUSY("busy"),
    JOB("job"),
    UNKNOWN_JOB("unknown_job"),
    REQUEST("request"),
}
