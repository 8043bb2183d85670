package org.ondeviceprofiler.core

/** Give a component's memory back. */
internal data class Unload(val component: String) : PlanStep {
    override fun toJson(): JsonObject = jsonOf("kind" to "unload", "component" to component)
}
