package org.ondeviceprofiler.core

/** What a runner writes to its journal and sends. */
internal sealed interface Event : Writable {
    val stamp: Stamp

    companion object {
        fun read(value: Value): Event =
            value.record {
                when (val kind = need("event").text()) {
                    "idle" -> Idle.of(this)
                    "begin" -> Begin.of(this)
                    "load" -> LoadDone.of(this)
                    "iteration" -> IterationDone.of(this)
                    "trace" -> Trace.of(this)
                    "canary" -> CanaryDone.of(this)
                    "waiting" -> Waiting.of(this)
                    "rest" -> Rest.of(this)
                    "artifact" -> Artifact.of(this)
                    "stop" -> Stop.of(this)
                    else -> throw value.broken("there is no event '$kind'")
                }
            }
    }
}
