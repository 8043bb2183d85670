package org.ondeviceprofiler.core

/** What a loop goes over. */
internal sealed interface LoopOver {
    /** What stands in the plan. */
    val written: Any

    companion object {
        fun read(value: Value): LoopOver =
            if (value.isInteger()) OverCount(value.integer()) else OverRows(value.map { text() })
    }
}
