"""The plan interpreter: calls, loops and times what a plan says, and knows nothing of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from profiler.bundle_files import inside
from profiler.clock import Clock, RealClock
from profiler.records.bundle import Component
from profiler.records.event import StageTime
from profiler.records.plan import Call, Constant, Free, Load, Loop, Media, Output, Plan, PlanStep, Unload
from profiler.runner.engines.engine import Engine, GraphCall

Values = dict[str, Any]
Action = Callable[[Values], None]

_NUMPY_TYPES: dict[str, type[np.generic]] = {"float32": np.float32, "int32": np.int32}


class Cancelled(Exception):
    """The host asked for a stop, or went away."""


class BrokenImage(Exception):
    """The model made an image that is no image."""


class Image(NamedTuple):
    """A finished image: `pixels` uint8 [height, width, 3], and the float image [1, 3, height, width] it came from."""

    pixels: npt.NDArray[np.uint8]
    float_image: npt.NDArray[np.float32]


class Iteration(NamedTuple):
    """One pass through a plan's body, on the device's boot clock; `output` is a tensor where the plan says so."""

    output: Image | npt.NDArray[Any]
    start_ns: int
    end_ns: int
    stages: tuple[StageTime, ...]


class Watcher:
    """What the interpreter tells while it works; the silent one."""

    def begin(self, stage: str, component: str | None) -> None:
        """Hear that a load or a stage begins."""

    def loaded(self, component: str, duration_ns: int) -> None:
        """Hear that a component is ready."""

    def check(self) -> None:
        """Raise Cancelled to stop before the next call."""


class Interpreter:
    """Runs one plan over one bundle's components; not thread-safe."""

    def __init__(
        self,
        plan: Plan,
        components: Mapping[str, Component],
        folder: Path,
        engine: Engine,
        *,
        watcher: Watcher | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._plan = plan
        self._components = components
        self._folder = folder
        self._engine = engine
        self._watcher = watcher or Watcher()
        self._now = (clock or RealClock()).boot_ns
        self._functions: dict[tuple[str, str], GraphCall] = {}
        self._constants = plan_constants(plan, folder)
        self._rounds_ns: list[int] | None = None
        self._stages = [(key, actions) for key, actions in self._compile_stages()]

    def prepare(self) -> None:
        """Load what the plan loads once a process."""
        for step in self._plan.prepare:
            self._load(step.component)

    def run(self, inputs: Mapping[str, Any]) -> Image:
        """Make one image from the job's inputs. Raises BrokenImage where the plan makes none."""
        output = self.iterate(inputs).output
        if not isinstance(output, Image):
            raise BrokenImage("the plan ends in a tensor")
        return output

    def iterate(self, inputs: Mapping[str, Any]) -> Iteration:
        """Make one image or tensor and tell how long each stage took. Raises EngineFailure or Cancelled."""
        values: Values = {**self._constants, **inputs}
        start_ns = mark_ns = self._now()
        stages: list[StageTime] = []
        for (stage, component), actions in self._stages:
            self._watcher.begin(stage, component)
            self._rounds_ns = None
            for action in actions:
                action(values)
            end_ns = self._now()
            rounds = tuple(self._rounds_ns) if self._rounds_ns is not None else None
            stages.append(StageTime(stage=stage, duration_ns=end_ns - mark_ns, rounds_ns=rounds))
            mark_ns = end_ns
        return Iteration(values["\0output"], start_ns, mark_ns, tuple(stages))

    def _compile_stages(self) -> Iterator[tuple[tuple[str, str | None], list[Action]]]:
        for stage, group in groupby(self._plan.body, key=_stage_of):
            steps = list(group)
            yield (stage, self._component_of(steps)), [self._compile(step) for step in steps]

    def _component_of(self, steps: list[PlanStep]) -> str | None:
        """Name a stage's component: the largest it uses, since that is where it fails, if it does."""
        inner = [step for loop in steps if isinstance(loop, Loop) for step in loop.body]
        names = [step.component for step in (*steps, *inner) if isinstance(step, Call | Load | Unload)]
        return max(names, key=lambda name: self._components[name].parameters, default=None)

    def _compile(self, step: PlanStep) -> Action:
        match step:
            case Load():
                return lambda values: self._load(step.component)
            case Unload():
                return lambda values: self._unload(step.component)
            case Call():
                return self._compile_call(step)
            case Loop():
                return self._compile_loop(step)
            case Free():
                return lambda values: _forget(values, step.values)
            case Output():
                return lambda values: _FINISH[step.media](values, step.value)

    def _compile_call(self, call: Call) -> Action:
        key = (call.component, call.function)
        binds = tuple(call.bind.items())
        ports = self._components[call.component].functions[call.function].outputs
        emits = tuple(call.emit.get(port.name) for port in ports)
        functions, check = self._functions, self._watcher.check

        def run(values: Values) -> None:
            check()
            results = functions[key]({port: values[name] for port, name in binds})
            for name, result in zip(emits, results, strict=True):
                if name is not None:
                    values[name] = result

        return run

    def _compile_loop(self, loop: Loop) -> Action:
        body = [self._compile(step) for step in loop.body]
        carry, index = tuple(loop.carry.items()), loop.index
        over = () if isinstance(loop.over, int) else tuple(loop.over.items())

        def run(values: Values) -> None:
            for name, initial in carry:
                values[name] = values[initial]
            rounds_ns: list[int] = []
            mark_ns = self._now()
            for number in range(_count(loop, values)):
                for element, tensor in over:
                    values[element] = values[tensor][number]
                if index is not None:
                    values[index] = np.array([number], dtype=np.int32)
                for action in body:
                    action(values)
                end_ns = self._now()
                rounds_ns.append(end_ns - mark_ns)
                mark_ns = end_ns
            self._rounds_ns = rounds_ns

        return run

    def _load(self, component: str) -> None:
        self._watcher.begin("load", component)
        self._watcher.check()
        start_ns = self._now()
        loaded = self._engine.load(component, self._components[component], self._folder)
        self._functions.update({(component, name): call for name, call in loaded.items()})
        self._watcher.loaded(component, self._now() - start_ns)

    def _unload(self, component: str) -> None:
        for key in [key for key in self._functions if key[0] == component]:
            del self._functions[key]


def to_pixels(float_image: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Round a float image [1, 3, height, width] of 0–255 to uint8 rows [height, width, 3]. Raises BrokenImage."""
    if float_image.ndim != 4 or float_image.shape[:2] != (1, 3):
        raise BrokenImage(f"the image has the shape {list(float_image.shape)}, not [1, 3, height, width]")
    rounded = np.rint(float_image[0])
    with np.errstate(invalid="ignore"):  # a NaN image is reported by the job, outside the timed window
        return np.ascontiguousarray(rounded.transpose(1, 2, 0).astype(np.uint8))


def file_constants(plan: Plan, folder: Path) -> Values:
    """Read the constants that a plan keeps in a file of the bundle."""
    return dict(load_file(str(inside(folder, plan.constants_file)))) if plan.constants_file else {}


def plan_constants(plan: Plan, folder: Path) -> Values:
    """Return every constant of a plan: the file's and its own."""
    return {
        **file_constants(plan, folder),
        **{name: _tensor(constant) for name, constant in plan.constants.items()},
    }


def _finish_image(values: Values, name: str) -> None:
    values["\0output"] = Image(to_pixels(values[name]), values[name])


def _finish_tensor(values: Values, name: str) -> None:
    values["\0output"] = np.asarray(values[name])


_FINISH: dict[Media, Callable[[Values, str], None]] = {"image": _finish_image, "tensor": _finish_tensor}


def _forget(values: Values, names: tuple[str, ...]) -> None:
    for name in names:
        del values[name]


def _stage_of(step: PlanStep) -> str:
    match step:
        case Load():
            return "load"
        case Unload():
            return "unload"
        case Free():
            return "free"
        case _:
            return step.stage


def _count(loop: Loop, values: Values) -> int:
    if isinstance(loop.over, int):
        return loop.over
    return min(len(values[tensor]) for tensor in loop.over.values())


def _tensor(constant: Constant) -> Any:
    return np.array(constant.values, dtype=_NUMPY_TYPES[constant.dtype]).reshape(constant.shape)
