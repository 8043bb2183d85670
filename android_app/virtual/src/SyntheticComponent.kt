package org.ondeviceprofiler.virtual

import org.ondeviceprofiler.core.Component
import org.ondeviceprofiler.core.GraphCall
import org.ondeviceprofiler.core.GraphFunction
import org.ondeviceprofiler.core.LoadedComponent

/** A component whose functions answer by the manifest's shapes. */
internal class SyntheticComponent(
    private val name: String,
    private val component: Component,
    private val engine: SyntheticEngine,
) : LoadedComponent {
    override val functions: Map<String, GraphCall> =
        component.functions.mapValues { (key, function) -> graph(key, function) }

    private fun graph(key: String, function: GraphFunction): GraphCall {
        val outputBytes = function.outputs.sumOf { it.sizeBytes }
        return GraphCall { feeds ->
            engine.call(name, key, component.parameters, outputBytes)
            val seed = fingerprint(name, key, feeds)
            function.outputs.mapIndexed { index, port -> drawn(port, seed + index) }
        }
    }

    override fun close() = engine.unload(name)
}
