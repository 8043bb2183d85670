package org.ondeviceprofiler.core

/** The plan constants that change with the step count, for each count that the source scheduler gave. */
internal data class Schedules(
    val schemaVersion: Int,
    val scheduler: String,
    val constantsBySteps: Map<Long, Map<String, Constant>>,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "schema_version" to schemaVersion,
            "scheduler" to scheduler,
            "constants_by_steps" to constantsBySteps,
        )

    companion object {
        fun read(value: Value): Schedules =
            value.record {
                Schedules(schemaVersion(default = 1), need("scheduler").text(), bySteps(need("constants_by_steps")))
            }

        private fun bySteps(value: Value): Map<Long, Map<String, Constant>> =
            value.map { map(Constant::read) }.mapKeys { (steps, _) ->
                steps.toLongOrNull() ?: throw value.broken("'$steps' is no number of steps")
            }
    }
}
