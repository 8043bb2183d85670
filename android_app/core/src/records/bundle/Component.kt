package org.ondeviceprofiler.core

/** One network part as exported; `files` lists all that its functions need, weights included. */
public class Component internal constructor(
    public val functions: Map<String, GraphFunction>,
    public val files: List<String>,
    public val parameters: Long,
    public val precision: String,
    internal val quantization: Quantization? = null,
    public val notes: List<String> = emptyList(),
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf(
            "functions" to functions,
            "files" to files,
            "parameters" to parameters,
            "precision" to precision,
            "quantization" to quantization,
            "notes" to notes,
        )

    internal companion object {
        fun read(value: Value): Component =
            value.record {
                Component(
                    need("functions").map(GraphFunction::read),
                    need("files").list { text() },
                    need("parameters").integer(),
                    need("precision").oneOf(*Recipe.SCHEMES),
                    this["quantization"]?.orNull(Quantization::read),
                    this["notes"]?.list { text() } ?: emptyList(),
                )
            }
    }
}
