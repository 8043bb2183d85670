"""Parts to ONNX files through torch.export, with bytes that depend on weights and code only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir
import torch

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quiet import quiet
from exporters.runtimes import Runtime, onnx_constants, onnx_half, onnx_weights
from exporters.runtimes.layout import function_path
from profiler.errors import InternalError, ModelError, first_line
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.records.recipe import Recipe
from profiler.records.record import DType
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine

# Protobuf ends at 2 GB; long before, parsing a file whole costs memory that mapping its weights does not.
EXTERNAL_DATA_FROM_BYTES = 100_000_000
_DTYPES: dict[onnx_ir.DataType, DType] = {onnx_ir.DataType.FLOAT: "float32", onnx_ir.DataType.INT32: "int32"}


def export_part(part: Part, folder: Path, recipe: Recipe, stages: Stages) -> Component:
    """Write a part's functions below `folder`. Raises ModelError where torch cannot export one."""
    functions: dict[str, Function] = {}
    files: list[str] = []
    precision = part.precision(recipe)
    for name, graph in part.graphs.items():
        stages.begin(f"export {part.name}.{name}")
        path = function_path(part.name, name, "onnx")
        model = _trace(f"{part.name}.{name}", graph, recipe.opset)
        onnx_weights.express(model)
        if precision == "fp16":
            onnx_half.convert(model, onnx_half.has_plain_weight if part.encodes_text else onnx_half.nothing, graph.wide)
        files += write_model(model, folder, path)
        functions[name] = Function(path=path, inputs=_ports(model.graph.inputs), outputs=_ports(model.graph.outputs))
    return Component(functions=functions, files=tuple(files), parameters=part.parameters, precision=precision)


def write_model(
    model: onnx_ir.Model, folder: Path, path: str, *, external_from_bytes: int = EXTERNAL_DATA_FROM_BYTES
) -> list[str]:
    """Write a model, its weights beside it in a second file where they are large; return the files' paths."""
    _strip(model)
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    if sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value) < (
        external_from_bytes
    ):
        onnx_ir.save(model, folder / path)
        return [path]
    onnx_ir.save(model, folder / path, external_data=f"{Path(path).name}.data")
    return [path, f"{path}.data"]


def _trace(name: str, graph: Graph, opset: int) -> onnx_ir.Model:
    try:
        with quiet():
            program = torch.onnx.export(
                graph.module,
                tuple(graph.inputs.values()),
                input_names=list(graph.inputs),
                output_names=list(graph.outputs),
                opset_version=opset,
                dynamo=True,
                optimize=False,  # below, after what it would take for nothing is protected
                custom_translation_table=onnx_weights.TRANSLATIONS,
                verbose=False,
            )
            if program is not None:
                onnx_constants.keep_small(program.model)
                program.optimize()
    except Exception as error:  # torch.export raises whatever the model's own code raises under tracing
        raise ModelError(f"torch cannot export {name} to ONNX: {first_line(error.__cause__ or error)}") from error
    if program is None:
        raise InternalError(f"torch.onnx.export returned nothing for {name}")
    return program.model  # type: ignore[no-any-return, unused-ignore]


def _strip(model: onnx_ir.Model) -> None:
    """Remove doc strings and metadata: stack traces with this machine's paths, and torch's notes."""
    graphs: list[Any] = [model.graph, *model.functions.values()]
    described: list[Any] = [model, *graphs]
    for graph in graphs:
        for node in graph.all_nodes() if hasattr(graph, "all_nodes") else graph:
            described += [node, *node.outputs]
        described += [*graph.inputs, *getattr(graph, "initializers", {}).values()]
    for item in described:
        item.metadata_props.clear()
        item.doc_string = None


def _ports(values: Any) -> tuple[Port, ...]:
    return tuple(_port(value) for value in values)


def _port(value: Any) -> Port:
    dtype, shape = _DTYPES.get(value.dtype), value.shape
    if dtype is None or shape is None or not all(isinstance(size, int) for size in shape):
        raise InternalError(
            f"graph boundary {value.name} is {value.dtype} {shape}; only static float32 and int32 may be"
        )
    return Port(name=value.name, dtype=dtype, shape=tuple(int(size) for size in shape))


RUNTIME = Runtime(
    export_part=export_part,
    engine=OnnxRuntimeEngine,
    tools=("onnx", "onnxscript", "onnx_ir", "onnxruntime"),
    precisions=("fp32", "fp16"),
    schemes=("fp32", "fp16", "int8", "nf4"),
)
