package org.ondeviceprofiler.core

/** Steps of a plan's body that follow each other under one name; `component` is where they fail, if they do. */
internal class Stage(val name: String, val component: String?, val steps: List<PlanStep>) {
    companion object {
        /** Part a plan's body into stages, in order. */
        fun of(plan: Plan, components: Map<String, Component>): List<Stage> {
            val stages = ArrayList<Stage>()
            var steps = emptyList<PlanStep>()
            for ((index, step) in plan.body.withIndex()) {
                steps = steps + step
                val next = plan.body.getOrNull(index + 1)
                if (next != null && nameOf(next) == nameOf(step)) continue
                stages.add(Stage(nameOf(step), largest(steps, components), steps))
                steps = emptyList()
            }
            return stages
        }

        /** Name the largest component that the steps use, since that is where they fail, if they do. */
        private fun largest(steps: List<PlanStep>, components: Map<String, Component>): String? =
            (steps + steps.filterIsInstance<Loop>().flatMap { it.body })
                .mapNotNull(::componentOf)
                .maxByOrNull { components.getValue(it).parameters }

        private fun componentOf(step: PlanStep): String? =
            when (step) {
                is Load -> step.component
                is Unload -> step.component
                is Call -> step.component
                is Loop, is Free, is Output -> null
            }

        private fun nameOf(step: PlanStep): String =
            when (step) {
                is Load -> "load"
                is Unload -> "unload"
                is Free -> "free"
                is Call -> step.stage
                is Loop -> step.stage
                is Output -> step.stage
            }
    }
}
