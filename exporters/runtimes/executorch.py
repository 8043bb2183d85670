"""Parts to ExecuTorch programs through torch.export, for XNNPACK on the CPU unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quantize.held import DECOMPOSITIONS
from exporters.quiet import quiet
from exporters.runtimes import Runtime
from exporters.runtimes.executorch_coded import CodedForms
from exporters.runtimes.executorch_forms import ExecutorchForms
from exporters.runtimes.executorch_graph import check_norms, check_taken, placement, sink
from exporters.runtimes.executorch_half import HalfInside
from exporters.runtimes.layout import function_path
from profiler.errors import InputError, InternalError, MissingExtra, ModelError, first_line
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.records.recipe import Backend, Precision, Recipe
from profiler.records.record import DType
from profiler.runner.engines.engine import Engine

if find_spec("executorch") is None:
    raise MissingExtra("exporting to ExecuTorch", "executorch")

_DTYPES: dict[torch.dtype, DType] = {torch.float32: "float32", torch.int32: "int32"}
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.ConvTranspose1d, nn.ConvTranspose2d)


def export_part(part: Part, folder: Path, recipe: Recipe, stages: Stages) -> Component:
    """Write each of a part's functions as a program below `folder`. Raises ModelError where one cannot be lowered."""
    precision = part.precision(recipe)
    computed = _computed(part, recipe)
    functions: dict[str, Function] = {}
    notes = list(_notes(part)) if computed == "fp16" and recipe.backend == "xnnpack" else []
    for name, graph in part.graphs.items():
        stages.begin(f"lower {part.name}.{name}")
        with stages.heartbeat():
            program = _traced(f"{part.name}.{name}", graph, computed, recipe.backend)
            path = function_path(part.name, name, "pte")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            edge = lower(f"{part.name}.{name}", program, recipe.backend, computed)
            notes += [f"{name}: {placement(edge)}"] if part.parameters else []
            write(edge, folder / path)
        functions[name] = Function(path=path, inputs=_inputs(graph), outputs=_outputs(graph, program))
    return Component(
        functions=functions,
        files=tuple(function.path for function in functions.values()),
        parameters=part.parameters,
        precision=precision,
        notes=tuple(notes),
    )


def check(recipe: Recipe) -> None:
    """Raise InputError for weights that a backend would store otherwise than a recipe says."""
    if recipe.backend == "xnnpack":
        return
    if recipe.text_encoder != recipe.precision:
        raise InputError(
            f"the {recipe.backend} backend stores all weights as {recipe.precision}, a text encoder's too",
            hint="Leave --text-encoder out, or use --backend xnnpack; for smaller weights on Apple devices, use "
            "--runtime coreml.",
        )
    if recipe.backend == "coreml" and find_spec("coremltools") is None:
        raise MissingExtra("exporting to ExecuTorch's Core ML backend", "export")


def unverified(recipe: Recipe) -> str | None:
    """Say why nothing here runs the programs, where nothing does."""
    if recipe.backend == "xnnpack":
        return None
    return f"ExecuTorch's Python package does not run programs for its {recipe.backend} backend"


def _computed(part: Part, recipe: Recipe) -> Precision:
    """Return what a part is computed in. On the CPU a text encoder's scheme says only how its weights are stored."""
    stored = recipe.backend == "xnnpack" and part.encodes_text
    return "fp16" if part.precision(recipe) == "fp16" and not stored else "fp32"


def _notes(part: Part) -> Iterator[str]:
    """Say what of a part in halves is not stored so."""
    layers = (layer for module in part.modules for layer in module.modules() if isinstance(layer, _CONVOLUTIONS))
    wide = sum({id(layer.weight): layer.weight.numel() for layer in layers}.values())
    if wide:
        yield (
            f"{100 * wide / part.parameters:.0f} % of its weights, rounded to halves, are float32 in the file and in "
            "memory: XNNPACK has no other form for those of convolutions."
        )


def trace(
    graph: Graph, precision: Precision, backend: Backend = "xnnpack", *, forms: ExecutorchForms | None = None
) -> torch.export.ExportedProgram:
    """Trace a function at a precision, boundary in float32 and int32. Raises what its own code raises under tracing.

    Backends other than XNNPACK round what they compute themselves, and decode weights when they compile.
    """
    cpu = backend == "xnnpack"
    module = HalfInside(graph.module).eval() if precision == "fp16" and cpu else graph.module
    coded = CodedForms(graph.module) if cpu else nullcontext()
    with quiet(), torch.no_grad():
        with forms or ExecutorchForms(), coded:
            program = torch.export.export(module, tuple(graph.inputs.values()), strict=False)
        # Coded weights that something else than a layer takes are decoded in plain sight.
        left = any(node.target in DECOMPOSITIONS for node in program.graph.nodes)
        return program.run_decompositions(dict(DECOMPOSITIONS)) if left else program


def _traced(name: str, graph: Graph, precision: Precision, backend: Backend) -> torch.export.ExportedProgram:
    try:
        return trace(graph, precision, backend)
    except Exception as error:  # torch.export raises whatever the model's own code raises under tracing
        raise ModelError(f"torch cannot export {name} for ExecuTorch: {first_line(error)}") from error


def lower(
    name: str, program: torch.export.ExportedProgram, backend: Backend = "xnnpack", precision: Precision = "fp32"
) -> Any:
    """Lower a traced function to a backend. Raises ModelError where the toolchain cannot."""
    with quiet():
        from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

        from exporters.runtimes.executorch_partitioners import partitioner

        # The IR check refuses calls that the partitioner keeps whole on purpose.
        config = EdgeCompileConfig(_check_ir_validity=False)
        try:
            chosen = [partitioner(backend, precision)]
            edge = to_edge_transform_and_lower(program, partitioner=chosen, compile_config=config)
        except Exception as error:  # a toolchain of many parts, each with errors of its own
            raise ModelError(f"ExecuTorch cannot lower {name} to {backend}: {first_line(error)}") from error
    lowered = edge.exported_program()
    check_norms(name, lowered)
    check_taken(name, lowered)
    sink(lowered)
    return edge


def write(edge: Any, path: Path) -> None:
    """Write a lowered function as a program file; inputs stay where the caller has them."""
    with quiet():
        from executorch.exir import ExecutorchBackendConfig
        from executorch.exir.passes import MemoryPlanningPass

        planning = MemoryPlanningPass(alloc_graph_input=False)
        made = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=planning))
    with path.open("wb") as stream:
        made.write_to_file(stream)


def _inputs(graph: Graph) -> tuple[Port, ...]:
    return tuple(_port(name, value) for name, value in graph.inputs.items())


def _outputs(graph: Graph, program: torch.export.ExportedProgram) -> tuple[Port, ...]:
    (output,) = (node for node in program.graph.nodes if node.op == "output")
    values = [node.meta["val"] for node in output.args[0]]
    return tuple(_port(name, value) for name, value in zip(graph.outputs, values, strict=True))


def _port(name: str, value: Tensor) -> Port:
    dtype = _DTYPES.get(value.dtype)
    if dtype is None or not all(isinstance(size, int) for size in value.shape):
        raise InternalError(
            f"graph boundary {name} is {value.dtype} {tuple(value.shape)}; only static float32 and int32 may be"
        )
    return Port(name=name, dtype=dtype, shape=tuple(int(size) for size in value.shape))


def _engine() -> Engine:
    from profiler.runner.engines.executorch_engine import ExecutorchEngine

    return ExecutorchEngine()


RUNTIME = Runtime(
    export_part=export_part,
    engine=_engine,
    tools=("executorch", "torchao"),
    precisions=("fp32", "fp16"),
    schemes=("fp32", "fp16", "int8", "nf4"),
    backends=("xnnpack", "coreml", "vulkan"),
    check=check,
    unverified=unverified,
)
