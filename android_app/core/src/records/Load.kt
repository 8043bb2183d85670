package org.ondeviceprofiler.core

/** Make a component's graphs ready to run. */
internal data class Load(val component: String) : PlanStep {
    override fun toJson(): JsonObject = jsonOf("kind" to "load", "component" to component)

    companion object {
        fun of(fields: Fields): Load = Load(fields.need("component").text())

        fun read(value: Value): Load =
            value.record {
                if (need("kind").text() != "load") throw value.broken("before the first image there are loads only")
                of(this)
            }
    }
}
