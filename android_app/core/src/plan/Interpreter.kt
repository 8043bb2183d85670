package org.ondeviceprofiler.core

import java.nio.file.Path

/** Runs one checked plan over one bundle's components: calls, loops and times, and knows nothing of models. */
internal class Interpreter(
    private val plan: Plan,
    private val components: Map<String, Component>,
    private val folder: Path,
    private val constants: Map<String, Tensor>,
    private val engine: Engine,
    private val watcher: Watcher,
    private val clock: Clock,
) {
    private val loaded = HashMap<String, LoadedComponent>()
    private val stages = Stage.of(plan, components)
    private var values = HashMap<String, Tensor>()
    private var roundsNs: List<Long>? = null
    private var product: Product? = null

    /** Load what the plan loads once a process. Throws EngineFailure, Cancelled. */
    fun prepare() = plan.prepare.forEach { load(it.component) }

    /** Make one image or tensor and tell how long each stage took. Throws EngineFailure, BrokenImage, Cancelled. */
    fun iterate(inputs: Map<String, Tensor>): Iteration {
        values = HashMap(constants + inputs)
        product = null
        val startNs = clock.bootNs()
        var markNs = startNs
        val times = ArrayList<StageTime>(stages.size)
        for (stage in stages) {
            val endNs = finished(stage)
            times.add(StageTime(stage.name, endNs - markNs, roundsNs))
            markNs = endNs
        }
        val made = product ?: throw BrokenImage("the plan ended without an output")
        return Iteration(made, startNs, markNs, times)
    }

    /** Do one stage and return when it ended. */
    private fun finished(stage: Stage): Long {
        watcher.begin(stage.name, stage.component)
        roundsNs = null
        stage.steps.forEach(::take)
        return clock.bootNs()
    }

    private fun take(step: PlanStep) {
        when (step) {
            is Load -> load(step.component)
            is Unload -> loaded.remove(step.component)?.close()
            is Call -> call(step)
            is Loop -> loop(step)
            is Free -> values.keys.removeAll(step.values.toSet())
            is Output -> output(step)
        }
    }

    private fun load(name: String) {
        watcher.begin("load", name)
        watcher.check()
        val startNs = clock.bootNs()
        val former = loaded.put(name, engine.load(name, components.getValue(name), folder))
        former?.close()
        watcher.loaded(name, clock.bootNs() - startNs)
    }

    private fun call(call: Call) {
        watcher.check()
        val ports = components.getValue(call.component).functions.getValue(call.function).outputs
        val graph = loaded[call.component]?.functions?.get(call.function)
            ?: throw EngineFailure(EngineFailureReason.INFERENCE_FAILED, call.component, "it has no ${call.function}")
        val results = graph.call(call.bind.mapValues { (_, value) -> values.getValue(value) })
        if (results.size != ports.size) {
            val detail = "${call.function} gave ${results.size} tensors, its manifest lists ${ports.size}"
            throw EngineFailure(EngineFailureReason.INFERENCE_FAILED, call.component, detail)
        }
        for ((port, result) in ports.zip(results)) call.emit[port.name]?.let { values[it] = result }
    }

    private fun loop(loop: Loop) {
        for ((name, initial) in loop.carry) values[name] = values.getValue(initial)
        val rounds = ArrayList<Long>()
        var markNs = clock.bootNs()
        for (number in 0 until count(loop.over)) {
            round(loop, number)
            val endNs = clock.bootNs()
            rounds.add(endNs - markNs)
            markNs = endNs
        }
        roundsNs = rounds
    }

    private fun round(loop: Loop, number: Int) {
        if (loop.over is OverRows) {
            for ((element, tensor) in loop.over.tensors) values[element] = values.getValue(tensor).row(number)
        }
        loop.index?.let { values[it] = Tensor.of(intArrayOf(number), 1) }
        loop.body.forEach(::take)
    }

    private fun count(over: LoopOver): Int =
        when (over) {
            is OverCount -> over.count.coerceAtMost(Int.MAX_VALUE.toLong()).toInt()
            is OverRows -> over.tensors.values.minOf { rowsOf(it) }
        }

    private fun rowsOf(name: String): Int =
        values.getValue(name).shape.firstOrNull()
            ?: throw plan.broken("'$name' is a single number, no loop goes over it")

    private fun output(output: Output) {
        val value = values.getValue(output.value)
        product = if (output.media == Media.IMAGE) finishImage(value) else TensorProduct(value)
    }
}
