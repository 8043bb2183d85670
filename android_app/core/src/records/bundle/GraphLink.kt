package org.ondeviceprofiler.core

/** One piece of a graph that is in several: what it takes and gives by name, and where it lies. */
public data class GraphLink(
    public val path: String,
    public val inputs: List<Port>,
    public val outputs: List<Port>,
) : Writable {
    override fun toJson(): JsonObject = jsonOf("path" to path, "inputs" to inputs, "outputs" to outputs)

    internal companion object {
        fun read(value: Value): GraphLink =
            value.record {
                GraphLink(need("path").text(), need("inputs").list(Port::read), need("outputs").list(Port::read))
            }
    }
}
