"""Plans: the calls that make one image for one task, written as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from exporters.conditioning import SOURCE_IMAGE, Branch, Conditioning
from exporters.guidance import guidance_of
from exporters.guide_step import next_name, state_names
from exporters.parts import Model
from exporters.schedules import Schedule, ScheduleTable, constant
from profiler.records.bundle import Component
from profiler.records.plan import Call, Load, Loop, Output, Plan, PlanStep, Port, Unload
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

CONSTANTS_FILE = "constants.safetensors"
_IMAGE = "image"


def build_plan(
    model: Model,
    task: Task,
    settings: TaskDefaults,
    table: ScheduleTable,
    components: Mapping[str, Component],
    recipe: Recipe,
) -> Plan:
    """Write the plan for one task. Raises InputError for settings that the model does not have."""
    conditioning = model.condition(task, settings)
    branches = conditioning.branches
    schedule = table.by_steps[settings.steps]
    body = _body(conditioning, components, table)
    resident = recipe.load_policy == "resident"
    weights = constant(np.array([branch.weight for branch in branches]))
    return Plan(
        task=task,
        scheduler=table.scheduler,
        steps=settings.steps,
        guidance=guidance_of(settings),
        inputs=_inputs(model, conditioning, schedule, table),
        constants={"guidance_weights": weights, **schedule.constants(), **conditioning.constants},
        constants_file=CONSTANTS_FILE if _reads(conditioning) & set(model.constants) else None,
        prepare=tuple(Load(component=name) for name in _components_in_order(body)) if resident else (),
        body=tuple(body if resident else load_around_use(body)),
    )


def load_around_use(body: Sequence[PlanStep]) -> list[PlanStep]:
    """Load each component right before the first step that uses it, and unload it right after the last."""
    uses = [components_of(step) for step in body]
    steps: list[PlanStep] = []
    for index, step in enumerate(body):
        seen_before = {name for used in uses[:index] for name in used}
        needed_later = {name for used in uses[index + 1 :] for name in used}
        steps += [Load(component=name) for name in uses[index] if name not in seen_before]
        steps.append(step)
        steps += [Unload(component=name) for name in uses[index] if name not in needed_later]
    return steps


def components_of(step: PlanStep) -> tuple[str, ...]:
    """Return the components that a step calls, each once."""
    calls = step.body if isinstance(step, Loop) else (step,)
    return tuple(dict.fromkeys(call.component for call in calls if isinstance(call, Call)))


def _components_in_order(body: Sequence[PlanStep]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for step in body for name in components_of(step)))


def _inputs(model: Model, conditioning: Conditioning, schedule: Schedule, table: ScheduleTable) -> tuple[Port, ...]:
    pictures = [port for port in conditioning.inputs if port.name == SOURCE_IMAGE]
    ports = [port for port in conditioning.inputs if port not in pictures]
    ports += [Port(name="noise", dtype="float32", shape=(1, *model.latents)), *pictures]
    if table.stochastic:
        ports.append(Port(name="step_noise", dtype="float32", shape=(schedule.rounds, *model.latents)))
    return tuple(ports)


def _reads(conditioning: Conditioning) -> set[str]:
    """Return the values that calls and branches are bound to."""
    bindings = [*(call.bind for call in conditioning.calls), *(branch.bind for branch in conditioning.branches)]
    return {value for bind in bindings for value in bind.values()}


def _body(conditioning: Conditioning, components: Mapping[str, Component], table: ScheduleTable) -> list[PlanStep]:
    decode = Call(
        component="decoder", function="decode", bind={"latents": "latents"}, emit={"image": _IMAGE}, stage="decoder"
    )
    return [
        *conditioning.calls,
        _start(components["guide_step"]),
        _loop(conditioning.branches, components, table),
        decode,
        Output(value=_IMAGE, stage="decoder"),
    ]


def _start(guide_step: Component) -> Call:
    start = guide_step.functions["start"]
    return Call(
        component="guide_step",
        function="start",
        bind={port.name: port.name for port in start.inputs},
        emit={port.name: f"first_{port.name}" for port in start.outputs},
        stage="denoiser",
    )


def _loop(branches: Sequence[Branch], components: Mapping[str, Component], table: ScheduleTable) -> Loop:
    over = {"timestep": "timesteps", "round_coefficients": "coefficients", "next_input_scale": "next_input_scales"}
    over |= {"round_noise": "step_noise"} if table.stochastic else {}
    states = state_names(table.terms)
    predictions = [_predict(branch, components["denoiser"]) for branch in branches]
    return Loop(
        over=over,
        carry={name: f"first_{name}" for name in states},
        body=(*predictions, _guide(branches, components["guide_step"], states)),
        stage="denoiser",
    )


def _predict(branch: Branch, denoiser: Component) -> Call:
    bound = {"latents": "model_input", "timestep": "timestep", **branch.bind}
    return Call(
        component="denoiser",
        function="predict",
        bind={port.name: bound[port.name] for port in denoiser.functions["predict"].inputs},
        emit={"prediction": f"prediction_{branch.name}"},
        stage="denoiser",
    )


def _guide(branches: Sequence[Branch], guide_step: Component, states: Sequence[str]) -> Call:
    function = f"guide_{len(branches)}"
    renamed = {"coefficients": "round_coefficients", "step_noise": "round_noise"}
    renamed |= {f"prediction_{number}": f"prediction_{branch.name}" for number, branch in enumerate(branches, 1)}
    ports = [port.name for port in guide_step.functions[function].inputs]
    return Call(
        component="guide_step",
        function=function,
        bind={port: renamed.get(port, port) for port in ports},
        emit={next_name(name): name for name in states},
        stage="denoiser",
    )
