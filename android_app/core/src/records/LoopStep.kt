package org.ondeviceprofiler.core

/** One step of a loop's body. */
internal sealed interface LoopStep : PlanStep {
    companion object {
        fun read(value: Value): LoopStep =
            PlanStep.read(value) as? LoopStep ?: throw value.broken("a loop holds calls and frees only")
    }
}
