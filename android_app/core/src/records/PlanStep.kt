package org.ondeviceprofiler.core

/** One step of a plan's body. */
internal sealed interface PlanStep : Writable {
    companion object {
        fun read(value: Value): PlanStep =
            value.record {
                when (val kind = need("kind").text()) {
                    "load" -> Load.of(this)
                    "unload" -> Unload(need("component").text())
                    "call" -> Call.of(this)
                    "loop" -> Loop.of(this)
                    "free" -> Free.of(this)
                    "output" -> Output.of(this)
                    else -> throw value.broken("there is no step '$kind'")
                }
            }
    }
}
