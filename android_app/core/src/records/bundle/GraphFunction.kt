package org.ondeviceprofiler.core

/**
 * One graph of a component; `path` is the file that an engine opens.
 *
 * A graph that is too large for one file is in `chain`: pieces that run one after the other, each taking inputs of the
 * function and outputs of earlier pieces. `path` is then the first one's.
 */
public data class GraphFunction(
    public val path: String,
    public val inputs: List<Port>,
    public val outputs: List<Port>,
    public val chain: List<GraphLink>,
) : Writable {
    override fun toJson(): JsonObject =
        jsonOf("path" to path, "inputs" to inputs, "outputs" to outputs, "chain" to chain)

    internal companion object {
        fun read(value: Value): GraphFunction =
            value.record {
                GraphFunction(
                    need("path").text(),
                    need("inputs").list(Port::read),
                    need("outputs").list(Port::read),
                    this["chain"]?.list(GraphLink::read) ?: emptyList(),
                )
            }
    }
}
