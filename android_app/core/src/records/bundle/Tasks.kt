package org.ondeviceprofiler.core

/** Read a map whose keys are tasks. */
internal fun <T> Value.byTask(read: Value.() -> T): Map<String, T> {
    val found = map(read)
    val unknown = found.keys.firstOrNull { it != "generate" && it != "edit" } ?: return found
    throw broken("there is no task '$unknown'")
}
