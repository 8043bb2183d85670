"""Parts to ExecuTorch programs through torch.export, for XNNPACK on the CPU."""

from __future__ import annotations

import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quiet import quiet
from exporters.runtimes import Runtime
from exporters.runtimes.executorch_forms import ExecutorchForms
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


class HalfInside(nn.Module):
    """A module in float16 with float32 at its boundary; the original keeps its weights."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = copy.deepcopy(module).half()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Cast, run, cast back."""
        found = self.module(*(each.half() if each.is_floating_point() else each for each in inputs))
        return tuple(each.float() for each in (found if isinstance(found, tuple) else (found,)))


def export_part(part: Part, folder: Path, recipe: Recipe, stages: Stages) -> Component:
    """Write each of a part's functions as a program below `folder`. Raises ModelError where one cannot be lowered."""
    precision: Precision = recipe.precision if part.parameters else "fp32"  # the scheduler's arithmetic stays exact
    functions: dict[str, Function] = {}
    for name, graph in part.graphs.items():
        stages.begin(f"lower {part.name}.{name}")
        with stages.heartbeat():
            program = _traced(f"{part.name}.{name}", graph, precision)
            path = function_path(part.name, name, "pte")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            write(lower(f"{part.name}.{name}", program), folder / path)
        functions[name] = Function(path=path, inputs=_inputs(graph), outputs=_outputs(graph, program))
    return Component(
        functions=functions,
        files=tuple(function.path for function in functions.values()),
        parameters=part.parameters,
        precision=precision,
    )


def trace(graph: Graph, precision: Precision, *, forms: ExecutorchForms | None = None) -> torch.export.ExportedProgram:
    """Trace a function at a precision, boundary in float32 and int32. Raises what its own code raises under tracing."""
    module = HalfInside(graph.module).eval() if precision == "fp16" else graph.module
    with quiet(), torch.no_grad(), forms or ExecutorchForms():
        return torch.export.export(module, tuple(graph.inputs.values()), strict=False)


def _traced(name: str, graph: Graph, precision: Precision) -> torch.export.ExportedProgram:
    try:
        return trace(graph, precision)
    except Exception as error:  # torch.export raises whatever the model's own code raises under tracing
        raise ModelError(f"torch cannot export {name} for ExecuTorch: {first_line(error)}") from error


def lower(name: str, program: torch.export.ExportedProgram) -> Any:
    """Lower a traced function to XNNPACK. Raises ModelError where the toolchain cannot."""
    with quiet():
        from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
        from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

        # The IR check refuses calls that the partitioner keeps whole on purpose.
        config = EdgeCompileConfig(_check_ir_validity=False)
        try:
            edge = to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()], compile_config=config)
        except Exception as error:  # a toolchain of many parts, each with errors of its own
            raise ModelError(f"ExecuTorch cannot lower {name}: {first_line(error)}") from error
    _check_norms(name, edge.exported_program())
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


RUNTIME = Runtime(export_part=export_part, engine=_engine, tools=("executorch", "torchao"))
