package org.ondeviceprofiler.core

/** Where a task's plan, the schedules for other step counts, and its default inputs lie. */
internal data class TaskPlan(val plan: String, val schedules: String, val defaults: DefaultInputs) : Writable {
    override fun toJson(): JsonObject = jsonOf("plan" to plan, "schedules" to schedules, "defaults" to defaults)

    companion object {
        fun read(value: Value): TaskPlan =
            value.record {
                TaskPlan(need("plan").text(), need("schedules").text(), DefaultInputs.read(need("defaults")))
            }
    }
}
