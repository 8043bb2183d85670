"""What every plan must obey before a runner touches it: names that exist, ports that fit, one image at the end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from profiler.errors import InvalidRecord
from profiler.records.bundle import Component, Function
from profiler.records.plan import Call, Free, Load, Loop, Output, Plan, PlanStep, Port, Unload


def check_plan(plan: Plan, components: Mapping[str, Component], file_constants: Iterable[str] = ()) -> None:
    """Walk a plan as a runner would, without computing. Raises InvalidRecord at the first broken rule."""
    if plan.steps < 1:
        raise _broken(plan, f"it takes {plan.steps} steps")
    for name, constant in plan.constants.items():
        if any(size < 0 for size in constant.shape):
            raise _broken(plan, f"constant {name!r} has the shape {list(constant.shape)}")
        if constant.dtype == "int32" and not all(-(2**31) <= value < 2**31 for value in constant.values):
            raise _broken(plan, f"constant {name!r} holds values that int32 does not")
        if math.prod(constant.shape) != len(constant.values):
            raise _broken(plan, f"constant {name!r} has {len(constant.values)} values for shape {list(constant.shape)}")
    known = {*plan.constants, *file_constants, *(port.name for port in plan.inputs)}
    walk = _Walk(plan, components, known)
    for step in (*plan.prepare, *plan.body):
        walk.take(step)
    # The second image finds the components as the first one left them.
    again = _Walk(plan, components, known, walk.loaded)
    for step in plan.body:
        again.take(step)
    if not plan.body or not isinstance(plan.body[-1], Output) or walk.outputs != 1:
        raise _broken(plan, "its body must end in its only output")


class _Walk:
    """The names and components known so far."""

    def __init__(
        self, plan: Plan, components: Mapping[str, Component], known: Iterable[str], loaded: Iterable[str] = ()
    ) -> None:
        self._plan = plan
        self._components = components
        self._known = set(known)
        self._made: dict[str, Port] = {}
        self.loaded = set(loaded)
        self.outputs = 0

    def take(self, step: PlanStep) -> None:
        match step:
            case Load():
                self._component(step.component)
                self.loaded.add(step.component)
            case Unload():
                self._need_loaded(step.component)
                self.loaded.discard(step.component)
            case Call():
                self._call(step)
            case Loop():
                self._loop(step)
            case Free():
                for name in step.values:
                    self._need((name,), "free")
                    self._known.discard(name)
            case Output():
                self._need((step.value,), "output")
                self._need_image(step.value) if step.media == "image" else self._need_made(step.value)
                self.outputs += 1

    def _call(self, call: Call) -> None:
        where = f"call {call.component}.{call.function}"
        function = self._component(call.component).functions.get(call.function)
        if function is None:
            raise _broken(self._plan, f"{where}: no such function")
        self._need_loaded(call.component)
        self._need(call.bind.values(), where)
        _check_ports(self._plan, call, function, where)
        self._known |= set(call.emit.values())
        self._made |= {call.emit[port.name]: port for port in function.outputs if port.name in call.emit}

    def _loop(self, loop: Loop) -> None:
        over = {} if isinstance(loop.over, int) else loop.over
        if loop.over == {} or loop.over == 0:
            raise _broken(self._plan, "a loop over nothing")
        self._need((*over.values(), *loop.carry.values()), "loop")
        self._known |= loop.carry.keys()
        for _ in range(1 if loop.over == 1 else 2):  # the second round finds what the first one left
            self._known |= {*over, *([loop.index] if loop.index else [])}
            for step in loop.body:
                self.take(step)
        emitted = {name for step in loop.body if isinstance(step, Call) for name in step.emit.values()}
        for name in loop.carry:
            if name not in emitted:
                raise _broken(self._plan, f"the loop carries {name!r}, but its body never emits it")

    def _component(self, name: str) -> Component:
        if name not in self._components:
            raise _broken(self._plan, f"the bundle has no component {name!r}")
        return self._components[name]

    def _need_loaded(self, name: str) -> None:
        if name not in self.loaded:
            raise _broken(self._plan, f"component {name!r} is used before it is loaded")

    def _need_made(self, name: str) -> None:
        if name not in self._made:
            raise _broken(self._plan, f"output: {name!r} is not what a call made")

    def _need_image(self, name: str) -> None:
        port = self._made.get(name)
        if port is None or port.dtype != "float32" or len(port.shape) != 4 or port.shape[:2] != (1, 3):
            raise _broken(self._plan, f"output: {name!r} is not the float32 image [1, 3, height, width] of a call")

    def _need(self, names: Iterable[str], where: str) -> None:
        for name in names:
            if name not in self._known:
                raise _broken(self._plan, f"{where}: nothing is called {name!r} there")


def _check_ports(plan: Plan, call: Call, function: Function, where: str) -> None:
    inputs, outputs = {port.name for port in function.inputs}, {port.name for port in function.outputs}
    if set(call.bind) != inputs:
        raise _broken(plan, f"{where}: binds {sorted(call.bind)}, the function takes {sorted(inputs)}")
    if not set(call.emit) <= outputs:
        raise _broken(plan, f"{where}: emits {sorted(set(call.emit) - outputs)}, which the function does not give")


def _broken(plan: Plan, what: str) -> InvalidRecord:
    return InvalidRecord(f"the plan for {plan.task!r} is broken: {what}")
