"""ExecuTorch programs from elsewhere, which tell of their boundary and of nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from exporters.foreign.graph import (
    COMPONENT,
    FOLDER,
    FUNCTION,
    PIXELS,
    Shapes,
    Tensor,
    ValueRange,
    refuse_shapes,
)
from profiler.errors import InputError, InvalidRecord, first_line
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.records.recipe import ComputeUnit, Precision
from profiler.records.record import DType
from profiler.runner.engines.engine import Engine, EngineFailure
from profiler.runner.engines.executorch_engine import ExecutorchEngine, open_method

# ExecuTorch's ScalarType, by the names that NumPy has for them.
_TYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
          11: "bool", 15: "bfloat16"}  # fmt: skip
_BOUNDARY: dict[str, DType] = {"float32": "float32", "int32": "int32"}
_NOTE = (
    "A program does not tell how many weights it has, nor how precise they are: no parameters are counted, and fp32 "
    "stands for its boundary."
)


class ExecutorchGraph:
    """A program's method `forward`, copied as it is."""

    runtime = "executorch"
    precision: Precision = "fp32"
    compute_unit: ComputeUnit = "cpu"
    opset = None
    packages = ("executorch",)
    not_run = None

    def __init__(self, path: Path, shapes: Shapes) -> None:
        refuse_shapes(shapes, path)
        if path.is_symlink():
            raise InputError(f"{path} is a link; a bundle is made of plain files", hint=f"Copy it: cp -L {path} …")
        try:
            meta = open_method(COMPONENT, path).method_meta()
        except EngineFailure as error:
            raise InvalidRecord(f"{path} is no ExecuTorch program that loads here: {error}") from error
        self._path = path
        self.files = (path,)
        self.inputs = tuple(_tensors(path, "input", meta.num_inputs(), meta.input_tensor_meta))
        self._outputs = tuple(_tensors(path, "output", meta.num_outputs(), meta.output_tensor_meta))

    def engine(self) -> Engine:
        """Return ExecuTorch."""
        return ExecutorchEngine()

    def write(self, folder: Path, feeds: Mapping[str, object]) -> Component:
        """Copy the program."""
        path = f"{FOLDER}/model.pte"
        (folder / FOLDER).mkdir(parents=True)
        shutil.copyfile(self._path, folder / path)
        inputs, outputs = (tuple(tensor.port for tensor in side) for side in (self.inputs, self._outputs))
        return Component(
            functions={FUNCTION: Function(path=path, inputs=inputs, outputs=outputs)},
            files=(path,),
            parameters=0,
            precision="fp32",
            notes=(_NOTE,),
        )

    def end_in_image(self, folder: Path, component: Component, output: str, values: ValueRange) -> Component | None:
        """Leave the program as it is, which serves where it ends in 0–255 already."""
        return component if values == PIXELS else None


def _tensors(path: Path, side: str, count: int, meta_of: Callable[[int], Any]) -> Iterator[Tensor]:
    for number in range(count):
        name = f"{side}_{number}"
        try:
            meta = meta_of(number)
        except Exception as error:  # the binding has one error for all its checks
            raise InputError(
                f"{path.name}: {name} is no tensor ({first_line(error)})",
                hint="Export a module whose forward takes and returns tensors only.",
            ) from error
        dtype = _TYPES.get(meta.dtype(), f"type {meta.dtype()}")
        if dtype not in _BOUNDARY:
            raise InputError(
                f"{path.name}: {name} is {dtype}{list(meta.sizes())}; a runner gives and takes float32 and int32",
                hint="Export a module that casts at its boundary: forward(x) → self.model(x.to(…)).float()",
            )
        port = Port(name=name, dtype=_BOUNDARY[dtype], shape=tuple(int(size) for size in meta.sizes()))
        yield Tensor(name=name, dtype=dtype, port=port)
