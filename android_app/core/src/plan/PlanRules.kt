package org.ondeviceprofiler.core

/** Walk a plan as a runner would, without computing. Throws InvalidRecord at the first broken rule. */
internal fun checkPlan(plan: Plan, components: Map<String, Component>, fileConstants: Set<String> = emptySet()) {
    if (plan.steps < 1) throw plan.broken("it takes ${plan.steps} steps")
    for ((name, constant) in plan.constants) checkConstant(plan, name, constant)
    val known = plan.constants.keys + fileConstants + plan.inputs.map { it.name }
    val walk = PlanWalk(plan, components, known)
    for (step in plan.prepare + plan.body) walk.take(step)
    // The second image finds the components as the first one left them.
    val again = PlanWalk(plan, components, known, walk.loaded)
    for (step in plan.body) again.take(step)
    if (plan.body.lastOrNull() !is Output || walk.outputs != 1) {
        throw plan.broken("its body must end in its only output")
    }
}

private fun checkConstant(plan: Plan, name: String, constant: Constant) {
    if (constant.shape.any { it < 0 }) throw plan.broken("constant '$name' has the shape ${constant.shape}")
    val fits = constant.values.all { it >= Int.MIN_VALUE && it < Int.MAX_VALUE + 1.0 }
    if (constant.dtype == DType.INT32 && !fits) throw plan.broken("constant '$name' holds values that int32 does not")
    val product = constant.shape.fold(1.0) { product, size -> product * size }
    if (product != constant.values.size.toDouble()) {
        throw plan.broken("constant '$name' has ${constant.values.size} values for shape ${constant.shape}")
    }
}

internal fun Plan.broken(what: String): InvalidRecord = InvalidRecord("the plan for '$task' is broken: $what")

/** Write names as a sorted list, as all runners' messages do. */
internal fun listed(names: Collection<String>): String = names.sorted().joinToString(", ", "[", "]") { "'$it'" }
