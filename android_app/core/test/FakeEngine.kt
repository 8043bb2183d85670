package org.ondeviceprofiler.core

import java.nio.file.Path

/** Notes what it is asked; answers zeros unless `answers` has another answer for a component. */
internal class FakeEngine(
    private val clock: FakeClock,
    private val costsNs: Map<String, Long> = emptyMap(),
    private val answers: Map<String, GraphCall> = emptyMap(),
    private val broken: Map<String, EngineFailureReason> = emptyMap(),
) : Engine {
    val asked = ArrayList<String>()

    override fun load(name: String, component: Component, folder: Path): LoadedComponent {
        asked.add("load $name")
        clock.sleepNs(costsNs["load $name"] ?: 0)
        broken[name]?.let { throw EngineFailure(it, name, "as the test wants it") }
        return FakeComponent(name, component)
    }

    private inner class FakeComponent(private val name: String, component: Component) : LoadedComponent {
        override val functions: Map<String, GraphCall> = component.functions.mapValues { (_, function) ->
            GraphCall { feeds ->
                asked.add(name)
                clock.sleepNs(costsNs[name] ?: 0)
                (answers[name] ?: zeros(function)).call(feeds)
            }
        }

        override fun close() {
            asked.add("unload $name")
        }
    }

    companion object {
        fun zeros(function: GraphFunction) = GraphCall { function.outputs.map { Tensor.allocate(it.dtype, it.shape) } }
    }
}
