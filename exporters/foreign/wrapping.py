"""A foreign graph to a bundle: one component, one task, nothing to compare it with."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from safetensors.numpy import save

from exporters.foreign.ending import Ended, ended, with_values
from exporters.foreign.graph import COMPONENT, FUNCTION, Foreign, Shapes, ValueRange
from exporters.foreign.inputs import make_inputs
from exporters.progress import Progress, Stages, silent
from profiler import codec
from profiler.bundle_files import MANIFEST, describe, sha256_of, written_whole
from profiler.errors import InputError, MissingSource, ModelError
from profiler.records.bundle import Bundle, DefaultInputs, Source, TaskPlan, Verification
from profiler.records.plan import Call, Guidance, Load, Output, Plan, Schedules
from profiler.records.recipe import Recipe
from profiler.records.spec import Licence
from profiler.runner.engines.engine import EngineFailure
from profiler.runner.interpreter import BrokenImage, Image, Interpreter

# Ending → module and class here; imported when asked for, since each brings a toolchain.
_FORMATS = {
    ".onnx": ("exporters.foreign.onnx", "OnnxGraph"),
    ".pte": ("exporters.foreign.executorch", "ExecutorchGraph"),
    ".mlpackage": ("exporters.foreign.coreml", "CoremlGraph"),
}
REFERENCE = "nothing: a foreign graph, taken as it is"
_INPUTS, _PLAN, _SCHEDULES = "inputs/generate.safetensors", "plans/generate.json", "plans/schedules.json"
# Names by which the product knows what to put in; a foreign graph's inputs are what its owner says.
_KNOWN_INPUTS = ("noise", "step_noise", "source_image", "prompt_ids", "prompt_mask", "negative_ids", "negative_mask")
_NEWER_FORMAT: Any = 2


class Wishes(NamedTuple):
    """What was said of a graph; None leaves it to the graph, or unknown."""

    inputs: Path | None = None
    seed: int = 0
    name: str | None = None
    licence: str | None = None
    output: str | None = None
    values: ValueRange | None = None
    shapes: Shapes = MappingProxyType({})


def wrap(file: Path, wishes: Wishes, destination: Path, *, progress: Progress = silent) -> Bundle:
    """Write a foreign graph as a bundle in a new folder; on any error nothing is left there.

    Raises InputError for what cannot be taken, ModelError for a graph that does not run or makes no finite numbers.
    """
    stages = Stages(progress, 5)
    stages.begin("read")
    graph = open_graph(file, wishes.shapes)
    made = make_inputs(graph.inputs, wishes.inputs, wishes.seed)
    with written_whole(destination) as folder:
        stages.begin("copy")
        feeds = {tensor.port.name: made.tensors[tensor.name] for tensor in graph.inputs}
        end = ended(graph, folder, graph.write(folder, feeds), wishes.output, wishes.values)
        plan = _plan(graph, end)
        tensors = {_value_name(tensor.name): made.tensors[tensor.name] for tensor in graph.inputs}
        stages.begin("run once")
        with stages.heartbeat():
            end, verification = _tried(graph, folder, end, plan, tensors)
        stages.begin("manifest")
        defaults = DefaultInputs(
            path=_INPUTS,
            prompt="",
            negative_prompt="",
            seed=wishes.seed,
            made_up=tuple(_value_name(name) for name in made.made_up),
        )
        _write_task(folder, _plan(graph, end), tensors)
        bundle = _manifest(graph, file, folder, end, defaults, verification, wishes)
        (folder / MANIFEST).write_bytes(codec.encode_pretty(bundle))
    stages.finish()
    return bundle


def open_graph(file: Path, shapes: Shapes) -> Foreign:
    """Open a graph by its ending. Raises MissingSource or InputError."""
    opened: Foreign = _format(file)(file, shapes)
    return opened


def check_format(file: Path) -> None:
    """Find out whether a file can be wrapped, and import what that takes. Raises MissingSource or InputError."""
    _format(file)


def _format(file: Path) -> Any:
    if file.suffix not in _FORMATS:
        raise InputError(f"{file} is not among the graphs that can be wrapped", hint=f"They are {', '.join(_FORMATS)}.")
    if not file.exists():
        raise MissingSource(f"no graph at {file}")
    if file.is_dir() != (file.suffix == ".mlpackage"):
        raise InputError(f"{file} is a {'folder' if file.is_dir() else 'file'}, which no {file.suffix} is")
    module, name = _FORMATS[file.suffix]
    return getattr(import_module(module), name)


def _value_name(name: str) -> str:
    return f"{name}_" if name in _KNOWN_INPUTS else name


def _plan(graph: Foreign, end: Ended) -> Plan:
    values = [_value_name(tensor.name) for tensor in graph.inputs]
    result = f"{max(values, key=len)}_output" if "output" in values else "output"
    ports = [replace(tensor.port, name=value) for tensor, value in zip(graph.inputs, values, strict=True)]
    call = Call(
        component=COMPONENT,
        function=FUNCTION,
        bind={tensor.port.name: value for tensor, value in zip(graph.inputs, values, strict=True)},
        emit={end.output.name: result},
        stage=COMPONENT,
    )
    return Plan(
        schema_version=_NEWER_FORMAT if end.media == "tensor" else 1,
        task="generate",
        scheduler="none",
        steps=1,
        guidance=Guidance(text=1.0),
        inputs=tuple(ports),
        constants={},
        prepare=(Load(component=COMPONENT),),
        body=(call, Output(value=result, stage=COMPONENT, media=end.media)),
    )


def _tried(
    graph: Foreign, folder: Path, end: Ended, plan: Plan, tensors: Mapping[str, Any]
) -> tuple[Ended, Verification]:
    """Run the graph once as a runner does. Raises ModelError where it does not run, or makes no finite numbers."""
    engine = graph.engine()
    name = f"{engine.name} {engine.version}"
    try:
        interpreter = Interpreter(plan, {COMPONENT: end.component}, folder, engine)
        interpreter.prepare()
        output = interpreter.iterate(tensors).output
    except (EngineFailure, BrokenImage) as error:
        if graph.not_run is None:
            raise ModelError(f"the graph does not run in {name}: {error}") from error
        return end, _verification(None, f"{graph.not_run}; here nothing ran it: {error}")
    values = output.float_image if isinstance(output, Image) else output
    if not np.isfinite(values).all():
        raise ModelError(f"the graph's output {end.output.name} has values that are not finite on these inputs")
    stood_in = graph.not_run and f"{graph.not_run}; {name} ran it once and found it finite"
    return with_values(end, values), _verification(name, stood_in)


def _verification(engine: str | None, not_run: str | None) -> Verification:
    return Verification(reference=REFERENCE, components={}, images={}, engine=engine, not_run=not_run)


def _write_task(folder: Path, plan: Plan, tensors: Mapping[str, Any]) -> None:
    for path in (_INPUTS, _PLAN):
        (folder / path).parent.mkdir()
    (folder / _INPUTS).write_bytes(save(dict(tensors)))
    (folder / _PLAN).write_bytes(codec.encode_pretty(plan))
    schedules = Schedules(scheduler=plan.scheduler, constants_by_steps={plan.steps: {}})
    (folder / _SCHEDULES).write_bytes(codec.encode_pretty(schedules))


def _manifest(
    graph: Foreign,
    file: Path,
    folder: Path,
    end: Ended,
    defaults: DefaultInputs,
    verification: Verification,
    wishes: Wishes,
) -> Bundle:
    height, width = end.output.shape[2:] if end.media == "image" else (0, 0)
    component = replace(end.component, notes=(*end.component.notes, *end.notes))
    recipe = Recipe(
        runtime=graph.runtime,
        precision=graph.precision,
        text_encoder=graph.precision,
        compute_unit=graph.compute_unit,
        height=height,
        width=width,
    )
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return Bundle(
        schema_version=_NEWER_FORMAT,
        model=wishes.name or _model_name(file),
        source=Source(repo=f"file:{file.name}", revision=None, weights_sha256=_digest(graph.files)),
        licence=Licence(name=wishes.licence or "unknown", commercial_use="unknown"),
        recipe=replace(recipe, opset=graph.opset) if graph.opset else recipe,
        components={COMPONENT: component},
        tasks={"generate": TaskPlan(plan=_PLAN, schedules=_SCHEDULES, defaults=defaults)},
        prompt_encoding=None,
        verification=verification,
        files=tuple(describe(folder, path) for path in paths),
        tools={name: importlib.metadata.version(name) for name in graph.packages},
    )


def _model_name(file: Path) -> str:
    return re.sub(r"[^\w.-]+", "_", file.stem) or "model"


def _digest(files: Sequence[Path]) -> str:
    """Hash a graph's files: a single one as it is, several with their names."""
    if len(files) == 1:
        return sha256_of(files[0])
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.name}\0{sha256_of(path)}\n".encode())
    return digest.hexdigest()
