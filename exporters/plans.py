"""Plans: the calls that make one image for one task, written as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from exporters.guidance import BLANK_LATENTS, ZERO_LATENTS, Branch, source_branches, text_branches
from exporters.guide_step import next_name, state_names
from exporters.parts import Model
from exporters.schedules import Schedule, ScheduleTable, constant
from profiler.records.bundle import Component
from profiler.records.plan import Call, Guidance, Load, Loop, Output, Plan, PlanStep, Port, Unload
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

CONSTANTS_FILE = "constants.safetensors"
_IMAGE = "image"


def guidance_of(settings: TaskDefaults) -> Guidance:
    """Return a task's guidance scales."""
    return Guidance(text=settings.text_guidance, image=settings.image_guidance)


def branches_of(model: Model, task: Task, settings: TaskDefaults) -> tuple[Branch, ...]:
    """Return the denoiser calls of one round. Raises InputError for guidance that the model does not have."""
    if not model.takes_source:
        return text_branches(guidance_of(settings))
    return source_branches(guidance_of(settings), "source_latents" if task == "edit" else BLANK_LATENTS)


def most_branches(model: Model) -> int:
    """Return how many denoiser calls a round can need at most."""
    return 3 if model.takes_source else 2


def build_plan(
    model: Model,
    task: Task,
    settings: TaskDefaults,
    table: ScheduleTable,
    components: Mapping[str, Component],
    recipe: Recipe,
) -> Plan:
    """Write the plan for one task."""
    branches = branches_of(model, task, settings)
    schedule = table.by_steps[settings.steps]
    body = _body(branches, task, components["guide_step"], table)
    resident = recipe.load_policy == "resident"
    weights = constant(np.array([branch.weight for branch in branches]))
    return Plan(
        task=task,
        scheduler=table.scheduler,
        steps=settings.steps,
        guidance=guidance_of(settings),
        inputs=_inputs(model, task, branches, schedule, table),
        constants={"guidance_weights": weights, **schedule.constants()},
        constants_file=CONSTANTS_FILE if _reads_constants(branches) else None,
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


def _inputs(
    model: Model, task: Task, branches: Sequence[Branch], schedule: Schedule, table: ScheduleTable
) -> tuple[Port, ...]:
    ids = (1, model.prompt_length)
    ports = [Port(name="prompt_ids", dtype="int32", shape=ids)]
    if _uses_negative(branches):
        ports.append(Port(name="negative_ids", dtype="int32", shape=ids))
    ports.append(Port(name="noise", dtype="float32", shape=(1, *model.latents)))
    if task == "edit":
        ports.append(Port(name="source_image", dtype="float32", shape=(1, *model.image)))
    if table.stochastic:
        ports.append(Port(name="step_noise", dtype="float32", shape=(schedule.rounds, *model.latents)))
    return tuple(ports)


def _uses_negative(branches: Sequence[Branch]) -> bool:
    return any(branch.text == "negative_states" for branch in branches)


def _reads_constants(branches: Sequence[Branch]) -> bool:
    return any(branch.source in (BLANK_LATENTS, ZERO_LATENTS) for branch in branches)


def _body(branches: Sequence[Branch], task: Task, guide_step: Component, table: ScheduleTable) -> list[PlanStep]:
    image = [_encode_image()] if task == "edit" else []
    decode = Call(
        component="decoder", function="decode", bind={"latents": "latents"}, emit={"image": _IMAGE}, stage="decoder"
    )
    return [
        *_encode_text(branches),
        *image,
        _start(guide_step),
        _loop(branches, guide_step, table),
        decode,
        Output(value=_IMAGE, stage="decoder"),
    ]


def _encode_text(branches: Sequence[Branch]) -> list[Call]:
    pairs = [("prompt_ids", "text_states")]
    if _uses_negative(branches):
        pairs.append(("negative_ids", "negative_states"))
    return [
        Call(
            component="text_encoder",
            function="encode",
            bind={"input_ids": ids},
            emit={"text_states": states},
            stage="text_encoder",
        )
        for ids, states in pairs
    ]


def _encode_image() -> Call:
    return Call(
        component="image_encoder",
        function="encode",
        bind={"source_image": "source_image"},
        emit={"source_latents": "source_latents"},
        stage="image_encoder",
    )


def _start(guide_step: Component) -> Call:
    start = guide_step.functions["start"]
    return Call(
        component="guide_step",
        function="start",
        bind={port.name: port.name for port in start.inputs},
        emit={port.name: f"first_{port.name}" for port in start.outputs},
        stage="denoiser",
    )


def _loop(branches: Sequence[Branch], guide_step: Component, table: ScheduleTable) -> Loop:
    over = {"timestep": "timesteps", "round_coefficients": "coefficients", "next_input_scale": "next_input_scales"}
    over |= {"round_noise": "step_noise"} if table.stochastic else {}
    states = state_names(table.terms)
    predictions = [_predict(branch) for branch in branches]
    return Loop(
        over=over,
        carry={name: f"first_{name}" for name in states},
        body=(*predictions, _guide(branches, guide_step, states)),
        stage="denoiser",
    )


def _predict(branch: Branch) -> Call:
    source = {"source_latents": branch.source} if branch.source else {}
    return Call(
        component="denoiser",
        function="predict",
        bind={"latents": "model_input", **source, "timestep": "timestep", "text_states": branch.text},
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
