package org.ondeviceprofiler.core

/** What host and runner must agree on before they talk. */
internal object Protocol {
    const val VERSION: Int = 1
    const val MAX_LINE_BYTES: Int = 1024 * 1024
    const val TOKEN_FILE: String = "token"
    const val ADDRESS_FILE: String = "runner.json"
    const val JOURNAL_FILE: String = "events.jsonl"

    // How a runner process ends where no stop event can say why.
    const val EXIT_HOST_GONE: Int = 3
    const val EXIT_NO_SPACE: Int = 5
}
