"""Parts to ExecuTorch programs through torch.export, for XNNPACK on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from exporters.parts import TEXT_ENCODER, Graph, Part
from exporters.progress import Stages
from exporters.quantize.held import DECOMPOSITIONS
from exporters.quiet import quiet
from exporters.runtimes import Runtime
from exporters.runtimes.executorch_coded import CodedForms
from exporters.runtimes.executorch_forms import ExecutorchForms
from exporters.runtimes.executorch_half import HalfInside
from exporters.runtimes.layout import function_path
from profiler.errors import InternalError, MissingExtra, ModelError, first_line
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.records.recipe import Precision, Recipe
from profiler.records.record import DType
from profiler.runner.engines.engine import Engine

if find_spec("executorch") is None:
    raise MissingExtra("exporting to ExecuTorch", "executorch")

_DTYPES: dict[torch.dtype, DType] = {torch.float32: "float32", torch.int32: "int32"}
_NORMS = ("native_layer_norm", "native_group_norm")


def export_part(part: Part, folder: Path, recipe: Recipe, stages: Stages) -> Component:
    """Write each of a part's functions as a program below `folder`. Raises ModelError where one cannot be lowered."""
    precision = part.precision(recipe)
    # A text encoder's scheme says how its weights are stored; it computes in float32.
    computed: Precision = "fp16" if precision == "fp16" and part.name != TEXT_ENCODER else "fp32"
    functions: dict[str, Function] = {}
    wide = 0
    for name, graph in part.graphs.items():
        stages.begin(f"lower {part.name}.{name}")
        with stages.heartbeat():
            program = _traced(f"{part.name}.{name}", graph, computed)
            wide += convolved(program) if computed == "fp16" else 0
            path = function_path(part.name, name, "pte")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            write(lower(f"{part.name}.{name}", program), folder / path)
        functions[name] = Function(path=path, inputs=_inputs(graph), outputs=_outputs(graph, program))
    return Component(
        functions=functions,
        files=tuple(function.path for function in functions.values()),
        parameters=part.parameters,
        precision=precision,
        notes=tuple(_notes(wide, part.parameters)),
    )


def convolved(program: torch.export.ExportedProgram) -> int:
    """Count the weights of convolutions."""
    taken = [node.args[1] for node in program.graph.nodes if "aten.conv" in str(node.target)]
    return sum(weight.meta["val"].numel() for weight in dict.fromkeys(taken))


def _notes(wide: int, parameters: int) -> Iterator[str]:
    if wide:
        yield (
            f"{100 * wide / parameters:.0f} % of its weights are float32 in the file and in memory: XNNPACK has no half "
            "form for weights of convolutions. They are rounded to half first."
        )


def trace(graph: Graph, precision: Precision, *, forms: ExecutorchForms | None = None) -> torch.export.ExportedProgram:
    """Trace a function at a precision, boundary in float32 and int32. Raises what its own code raises under tracing."""
    module = HalfInside(graph.module).eval() if precision == "fp16" else graph.module
    with quiet(), torch.no_grad():
        with forms or ExecutorchForms(), CodedForms(graph.module):
            program = torch.export.export(module, tuple(graph.inputs.values()), strict=False)
        # Coded weights that something else than a layer takes are decoded in plain sight.
        left = any(node.target in DECOMPOSITIONS for node in program.graph.nodes)
        return program.run_decompositions(dict(DECOMPOSITIONS)) if left else program


def _traced(name: str, graph: Graph, precision: Precision) -> torch.export.ExportedProgram:
    try:
        return trace(graph, precision)
    except Exception as error:  # torch.export raises whatever the model's own code raises under tracing
        raise ModelError(f"torch cannot export {name} for ExecuTorch: {first_line(error)}") from error


def lower(name: str, program: torch.export.ExportedProgram) -> Any:
    """Lower a traced function to XNNPACK. Raises ModelError where the toolchain cannot."""
    with quiet():
        from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

        from exporters.runtimes.executorch_partitioners import xnnpack

        # The IR check refuses calls that the partitioner keeps whole on purpose.
        config = EdgeCompileConfig(_check_ir_validity=False)
        try:
            edge = to_edge_transform_and_lower(program, partitioner=xnnpack(), compile_config=config)
        except Exception as error:  # a toolchain of many parts, each with errors of its own
            raise ModelError(f"ExecuTorch cannot lower {name}: {first_line(error)}") from error
    _check_norms(name, edge.exported_program())
    _check_taken(name, edge.exported_program())
    _sink(edge.exported_program())
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


def islands(edge: Any) -> int:
    """Count the delegated subgraphs: what lowering time follows, and how often a call changes hands."""
    nodes = edge.exported_program().graph.nodes
    return sum("executorch_call_delegate" in str(node.target) for node in nodes)


def _check_norms(name: str, program: torch.export.ExportedProgram) -> None:
    """Refuse a norm of halves, however it came here: this runtime computes it wrong and says nothing."""
    for node in program.graph.nodes:
        if any(norm in str(node.target) for norm in _NORMS) and node.args[0].meta["val"].dtype != torch.float32:
            raise InternalError(
                f"{name} has a {node.target} in {node.args[0].meta['val'].dtype}; norms must be float32"
            )


def _check_taken(name: str, program: torch.export.ExportedProgram) -> None:
    """Refuse a weight of eight bits that no delegate took: runtimes on devices have no operator to decode it."""
    for node in program.graph.nodes:
        if "quantized_decomposed" in str(node.target):
            raise InternalError(f"{name} has a {node.target} that XNNPACK did not take")


def _sink(program: torch.export.ExportedProgram) -> None:
    """Move what is computed of weights alone to its first use: lowering leaves it all in front, where every layer's
    decoded weight would be in memory at once."""
    varying = {node for node in program.graph.nodes if node.name in program.graph_signature.user_inputs}
    waiting: set[Node] = set()
    for node in list(program.graph.nodes):
        if node.op == "call_function" and varying.isdisjoint(node.all_input_nodes):
            waiting.add(node)
        else:
            _place_inputs(node, waiting, node)
            varying |= {node} if node.op == "call_function" else set()
    program.graph_module.recompile()


def _place_inputs(node: Node, waiting: set[Node], before: Node) -> None:
    for each in node.all_input_nodes:
        if each in waiting:
            waiting.remove(each)
            _place_inputs(each, waiting, before)
            before.prepend(each)


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
)
