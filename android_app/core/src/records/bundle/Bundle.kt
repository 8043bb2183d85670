package org.ondeviceprofiler.core

/** The manifest (`bundle.json`): what was exported, and the hash of every file. */
internal class Bundle(
    val schemaVersion: Int,
    val model: String,
    val source: Source,
    val licence: Licence,
    val recipe: Recipe,
    val components: Map<String, Component>,
    val tasks: Map<String, TaskPlan>,
    val promptEncoding: PromptEncoding?,
    val verification: Verification,
    val files: List<BundleFile>,
    val tools: Map<String, String>,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "schema_version" to schemaVersion,
            "model" to model,
            "source" to source,
            "licence" to licence,
            "recipe" to recipe,
            "components" to components,
            "tasks" to tasks,
            "prompt_encoding" to promptEncoding,
            "verification" to verification,
            "files" to files,
            "tools" to tools,
        )

    companion object {
        fun read(value: Value): Bundle =
            value.record {
                Bundle(
                    schemaVersion(default = 1),
                    need("model").text(),
                    Source.read(need("source")),
                    Licence.read(need("licence")),
                    Recipe.read(need("recipe")),
                    need("components").map(Component::read),
                    need("tasks").byTask(TaskPlan::read),
                    need("prompt_encoding").orNull(PromptEncoding::read),
                    Verification.read(need("verification")),
                    need("files").list(BundleFile::read),
                    need("tools").map { text() },
                )
            }
    }
}
