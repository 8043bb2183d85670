"""A runtime: each function as a program that torch.export saves."""

from __future__ import annotations

from pathlib import Path

import torch
from ontoy.engine import ToyEngine  # type: ignore[import-not-found]  # there once it is installed

from exporters.parts import Part
from exporters.progress import Stages
from exporters.runtimes import Runtime
from exporters.runtimes.layout import function_path
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.records.recipe import Recipe


def export_part(part: Part, folder: Path, recipe: Recipe, stages: Stages) -> Component:
    """Write a part's functions below a folder."""
    functions = {}
    for name, graph in part.graphs.items():
        stages.begin(f"export {part.name}.{name}")
        path = function_path(part.name, name, "pt2")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        torch.export.save(torch.export.export(graph.module, tuple(graph.inputs.values())), folder / path)
        inputs = tuple(_port(port, value) for port, value in graph.inputs.items())
        outputs = tuple(_port(port, value) for port, value in zip(graph.outputs, graph.run(), strict=True))
        functions[name] = Function(path=path, inputs=inputs, outputs=outputs)
    files = tuple(function.path for function in functions.values())
    return Component(functions=functions, files=files, parameters=part.parameters, precision="fp32")


def _port(name: str, value: torch.Tensor) -> Port:
    return Port(name=name, dtype="int32" if value.dtype == torch.int32 else "float32", shape=tuple(value.shape))


RUNTIME = Runtime(export_part=export_part, engine=ToyEngine, tools=("ontoy",))
