package org.ondeviceprofiler.core

/** One task at one step count: `prepare` runs once a process, `body` once an image. */
internal data class Plan(
    val schemaVersion: Int,
    val task: String,
    val scheduler: String,
    val steps: Long,
    val guidance: Guidance,
    val inputs: List<Port>,
    val constants: Map<String, Constant>,
    val constantsFile: String?,
    val prepare: List<Load>,
    val body: List<PlanStep>,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "schema_version" to schemaVersion,
            "task" to task,
            "scheduler" to scheduler,
            "steps" to steps,
            "guidance" to guidance,
            "inputs" to inputs,
            "constants" to constants,
            "constants_file" to constantsFile,
            "prepare" to prepare,
            "body" to body,
        )

    companion object {
        fun read(value: Value): Plan =
            value.record {
                Plan(
                    schemaVersion(default = 1),
                    need("task").oneOf("generate", "edit"),
                    need("scheduler").text(),
                    need("steps").integer(),
                    Guidance.read(need("guidance")),
                    need("inputs").list(Port::read),
                    need("constants").map(Constant::read),
                    this["constants_file"]?.orNull { text() },
                    need("prepare").list(Load::read),
                    need("body").list(PlanStep::read),
                )
            }
    }
}
