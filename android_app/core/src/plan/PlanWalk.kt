package org.ondeviceprofiler.core

/** The names and components known so far on the way through a plan. */
internal class PlanWalk(
    private val plan: Plan,
    private val components: Map<String, Component>,
    known: Set<String>,
    loaded: Set<String> = emptySet(),
) {
    private val known = known.toMutableSet()
    private val made = HashMap<String, Port>()
    private val held = loaded.toMutableSet()

    val loaded: Set<String> get() = held
    var outputs: Int = 0
        private set

    /** Take one step. Throws InvalidRecord where it breaks a rule. */
    fun take(step: PlanStep) {
        when (step) {
            is Load -> load(step)
            is Unload -> unload(step)
            is Call -> call(step)
            is Loop -> loop(step)
            is Free -> free(step)
            is Output -> output(step)
        }
    }

    private fun load(step: Load) {
        component(step.component)
        held.add(step.component)
    }

    private fun unload(step: Unload) {
        needLoaded(step.component)
        held.remove(step.component)
    }

    private fun free(step: Free) {
        for (name in step.values) {
            need(listOf(name), "free")
            known.remove(name)
        }
    }

    private fun call(call: Call) {
        val where = "call ${call.component}.${call.function}"
        val function =
            component(call.component).functions[call.function] ?: throw plan.broken("$where: no such function")
        needLoaded(call.component)
        need(call.bind.values, where)
        checkPorts(call, function, where)
        known.addAll(call.emit.values)
        for (port in function.outputs) call.emit[port.name]?.let { made[it] = port }
    }

    private fun checkPorts(call: Call, function: GraphFunction, where: String) {
        val inputs = function.inputs.map { it.name }.toSet()
        if (call.bind.keys != inputs) {
            throw plan.broken("$where: binds ${listed(call.bind.keys)}, the function takes ${listed(inputs)}")
        }
        val unknown = call.emit.keys - function.outputs.map { it.name }.toSet()
        if (unknown.isNotEmpty()) {
            throw plan.broken("$where: emits ${listed(unknown)}, which the function does not give")
        }
    }

    private fun loop(loop: Loop) {
        val over = (loop.over as? OverRows)?.tensors ?: emptyMap()
        if (loop.over == OverCount(0) || loop.over == OverRows(emptyMap())) throw plan.broken("a loop over nothing")
        need(over.values + loop.carry.values, "loop")
        known.addAll(loop.carry.keys)
        // The second round finds what the first one left.
        repeat(if (loop.over == OverCount(1)) 1 else 2) {
            known.addAll(over.keys)
            loop.index?.let(known::add)
            loop.body.forEach(::take)
        }
        val emitted = loop.body.filterIsInstance<Call>().flatMap { it.emit.values }
        val kept = loop.carry.keys.firstOrNull { it !in emitted } ?: return
        throw plan.broken("the loop carries '$kept', but its body never emits it")
    }

    private fun output(output: Output) {
        need(listOf(output.value), "output")
        val port = made[output.value]
        if (output.media == Media.IMAGE && !isImage(port)) {
            throw plan.broken(
                "output: '${output.value}' is not the float32 image [1, 3, height, width] of a call",
            )
        }
        if (port == null) throw plan.broken("output: '${output.value}' is not what a call made")
        outputs += 1
    }

    private fun isImage(port: Port?): Boolean =
        port != null && port.dtype == DType.FLOAT32 && port.shape.size == 4 && port.shape.take(2) == listOf(1, 3)

    private fun component(name: String): Component =
        components[name] ?: throw plan.broken("the bundle has no component '$name'")

    private fun needLoaded(name: String) {
        if (name !in held) throw plan.broken("component '$name' is used before it is loaded")
    }

    private fun need(names: Collection<String>, where: String) {
        val missing = names.firstOrNull { it !in known } ?: return
        throw plan.broken("$where: nothing is called '$missing' there")
    }
}
