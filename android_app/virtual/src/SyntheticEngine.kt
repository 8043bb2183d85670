package org.ondeviceprofiler.virtual

import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import org.ondeviceprofiler.core.Clock
import org.ondeviceprofiler.core.Component
import org.ondeviceprofiler.core.Engine
import org.ondeviceprofiler.core.EngineFailure
import org.ondeviceprofiler.core.EngineFailureReason
import org.ondeviceprofiler.core.JsonObject
import org.ondeviceprofiler.core.LoadedComponent
import org.ondeviceprofiler.core.inside

/** Computes nothing: outputs are drawn from the inputs, and the model says how long each call would have taken. */
internal class SyntheticEngine(private val control: ControlChannel, private val clock: Clock) : Engine {
    override fun load(name: String, component: Component, folder: Path): LoadedComponent {
        val bytes = component.files.sumOf { sizeOf(name, inside(folder, it)) }
        spend(name, EngineFailureReason.LOAD_FAILED) {
            control.ask("load", "component" to name, "file_bytes" to bytes, "parameters" to component.parameters)
        }
        return SyntheticComponent(name, component, this)
    }

    /** Let the model run a function for as long as it takes. Throws EngineFailure. */
    fun call(name: String, function: String, parameters: Long, outputBytes: Long) {
        spend(name, EngineFailureReason.INFERENCE_FAILED) {
            control.ask(
                "call",
                "component" to name,
                "function" to function,
                "parameters" to parameters,
                "output_bytes" to outputBytes,
            )
        }
    }

    /** Give a component's memory back to the model. */
    fun unload(name: String) {
        control.ask("unload", "component" to name)
    }

    private fun spend(name: String, reason: EngineFailureReason, cost: () -> JsonObject) {
        val answer =
            try {
                cost()
            } catch (error: ModelRefused) {
                val full = error.what.startsWith("out of memory")
                throw EngineFailure(if (full) EngineFailureReason.OUT_OF_MEMORY else reason, name, error.what, error)
            }
        clock.sleepNs(answer.needInteger("duration_ns"))
    }

    private fun sizeOf(name: String, path: Path): Long =
        try {
            Files.size(path)
        } catch (error: IOException) {
            throw EngineFailure(EngineFailureReason.LOAD_FAILED, name, "cannot open $path", error)
        }
}
