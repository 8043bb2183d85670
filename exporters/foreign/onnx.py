"""ONNX graphs from elsewhere, their weights inside or beside them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec.structs import replace

from exporters.foreign import onnx_boundary, onnx_file
from exporters.foreign.graph import COMPONENT, FOLDER, FUNCTION, Shapes, Tensor, ValueRange, with_output
from profiler.errors import ModelError
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.records.recipe import ComputeUnit, EncoderScheme, Precision
from profiler.runner.engines.engine import Engine, EngineFailure
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine

_OLDEST_OPSET = 8  # since when Mul, Add, Max and Min take a single number beside a tensor


class OnnxGraph:
    """A graph with static shapes; casts stand where its boundary is neither float32 nor int32."""

    runtime = "onnx"
    compute_unit: ComputeUnit = "cpu"
    packages = ("onnx", "onnxruntime")
    not_run = None

    def __init__(self, path: Path, shapes: Shapes) -> None:
        self._path = path
        self._model = onnx_file.read_model(path)
        self._external = onnx_file.external_files(self._model, path)
        self._changed = onnx_boundary.fix_shapes(self._model, shapes, path)
        sides = onnx_boundary.sides(self._model, onnx_boundary.real_inputs(self._model.graph), path)
        self._outputs = onnx_boundary.sides(self._model, self._model.graph.output, path)
        self._changed |= onnx_boundary.cast_boundary(self._model, sides, self._outputs)
        self._weights = onnx_file.weights_by_type(self._model)
        self.files = (path, *self._external.values())
        self.opset = onnx_boundary.opset_of(self._model)
        self.inputs = tuple(
            Tensor(name=side.name, dtype=side.dtype, port=Port(name=side.port, dtype=side.boundary, shape=side.shape))
            for side in sides
            if side.shape is not None
        )

    @property
    def precision(self) -> Precision:
        """Return what most weights are stored in, of what a recipe knows."""
        return "fp16" if self._most() == "float16" else "fp32"

    def engine(self) -> Engine:
        """Return ONNX Runtime."""
        return OnnxRuntimeEngine()

    def write(self, folder: Path, feeds: Mapping[str, object]) -> Component:
        """Copy graph and weights; run it where it does not tell the shape of what comes out."""
        name = _file_name(self._external)
        target = folder / FOLDER
        target.mkdir(parents=True)
        files = onnx_file.copy_files(self._external, target)
        if self._changed:
            onnx_file.write_model(self._model, target / name)
        else:
            shutil.copyfile(self._path, target / name)
        path = f"{FOLDER}/{name}"
        component = self._component(path, (path, *(f"{FOLDER}/{PurePosixPath(file)}" for file in files)))
        if all(side.shape is not None for side in self._outputs):
            return component
        return self._as_run(component, folder, feeds)

    def end_in_image(self, folder: Path, component: Component, output: str, values: ValueRange) -> Component | None:
        """Append the way from a range of values to 0–255, within it."""
        if self.opset < _OLDEST_OPSET:
            return None
        function = component.functions[FUNCTION]
        shape = next(port.shape for port in function.outputs if port.name == output)
        name = onnx_boundary.end_in_pixels(self._model, output, shape, values)
        onnx_file.write_model(self._model, folder / function.path)
        return with_output(component, output, Port(name=name, dtype="float32", shape=shape))

    def _component(self, path: str, files: tuple[str, ...]) -> Component:
        outputs = tuple(Port(name=s.port, dtype=s.boundary, shape=s.shape or ()) for s in self._outputs)
        return Component(
            functions={FUNCTION: Function(path=path, inputs=tuple(t.port for t in self.inputs), outputs=outputs)},
            files=files,
            parameters=sum(self._weights.values()),
            precision=self._scheme(),
            notes=tuple(self._notes()),
        )

    def _as_run(self, component: Component, folder: Path, feeds: Mapping[str, object]) -> Component:
        """Return a component with the shapes that came out of a run."""
        function = component.functions[FUNCTION]
        try:
            found: Any = self.engine().load(COMPONENT, component, folder)[FUNCTION](feeds)
        except EngineFailure as error:
            raise ModelError(f"{self._path.name} does not run in ONNX Runtime: {error}") from error
        outputs = tuple(replace(p, shape=tuple(v.shape)) for p, v in zip(function.outputs, found, strict=True))
        return replace(component, functions={FUNCTION: replace(function, outputs=outputs)})

    def _most(self) -> str:
        return max(self._weights, key=lambda kind: self._weights[kind], default="float")

    def _scheme(self) -> Precision | EncoderScheme:
        return "int8" if self._most() in ("int8", "uint8") else self.precision

    def _notes(self) -> list[str]:
        notes = []
        if set(self._weights) - {"float"}:
            notes.append("weights: " + ", ".join(f"{count:,} {kind}" for kind, count in self._weights.most_common()))
        cast = [s.name for s in self._outputs if s.port != s.name]
        cast = [t.name for t in self.inputs if t.port.name != t.name] + cast
        if cast:
            notes.append(f"casts to float32 or int32 were added at {', '.join(cast)}; they are part of its latency")
        return notes


def _file_name(external: Mapping[str, Path]) -> str:
    """Return a name for the graph that none of its weight files has, on any file system."""
    taken = {str(PurePosixPath(location)).split("/")[0].casefold() for location in external}
    return next(name for name in (f"{'_' * n}model.onnx" for n in range(len(taken) + 1)) if name not in taken)
