"""Core ML packages from elsewhere: checked before they are opened, and copied as they are."""

from __future__ import annotations

import math
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coremltools.proto import FeatureTypes_pb2, MIL_pb2

from exporters.coreml_package import write_package
from exporters.foreign.graph import FOLDER, FUNCTION, PIXELS, Shapes, Tensor, ValueRange, refuse_shapes
from exporters.mil_ops import Unsupported
from exporters.verify_coreml import MilInterpreter, read_specification
from profiler.errors import InputError, InvalidRecord
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.records.recipe import ComputeUnit, EncoderScheme, Precision
from profiler.records.record import DType
from profiler.runner.engines.coreml_package import open_package
from profiler.runner.engines.engine import Engine

_ARRAY = FeatureTypes_pb2.ArrayFeatureType
_TYPES: dict[int, tuple[str, DType | None]] = {
    _ARRAY.FLOAT32: ("float32", "float32"),
    _ARRAY.INT32: ("int32", "int32"),
    _ARRAY.FLOAT16: ("float16", None),
    _ARRAY.DOUBLE: ("float64", None),
}
_WEIGHTS = ("FLOAT32", "FLOAT16", "INT8", "UINT8", "INT4", "UINT4", "UINT6", "UINT3", "UINT2", "UINT1")
_REMEDY = "Convert it with coremltools.TensorType(shape=…, dtype=numpy.float32) for each input and output."


class CoremlGraph:
    """A package that holds one MIL program with fixed shapes."""

    runtime = "coreml"
    compute_unit: ComputeUnit = "all"
    opset = None
    packages = ("coremltools",)
    not_run = "Core ML runs on Apple devices only"

    def __init__(self, path: Path, shapes: Shapes) -> None:
        refuse_shapes(shapes, path)
        self._package = package = open_package(path)
        try:
            specification = read_specification(package)
        except Unsupported as error:
            raise InvalidRecord(
                f"{path}: {error}", hint="Programs are taken: coremltools.convert(…, convert_to='mlprogram')."
            ) from error
        self._path = path
        self._program = specification.mlProgram.functions["main"]
        self._weights = _weights_by_type(self._block)
        self.files = tuple(sorted(Path(parent) / name for parent, _, names in os.walk(path) for name in names))
        self.inputs = tuple(self._tensor(feature) for feature in specification.description.input)
        self._outputs = tuple(self._tensor(feature) for feature in specification.description.output)

    @property
    def precision(self) -> Precision:
        """Return what most weights are stored in, of what a recipe knows."""
        return "fp16" if self._most() == "FLOAT16" else "fp32"

    def engine(self) -> Engine:
        """Return the interpreter of MIL programs."""
        return MilInterpreter()

    def write(self, folder: Path, feeds: Mapping[str, object]) -> Component:
        """Copy the package."""
        path = f"{FOLDER}/model.mlpackage"
        files = [f"{path}/{file}" for file in self._copy(folder / path)]
        inputs, outputs = (tuple(tensor.port for tensor in side) for side in (self.inputs, self._outputs))
        return Component(
            functions={FUNCTION: Function(path=path, inputs=inputs, outputs=outputs)},
            files=tuple(files),
            parameters=sum(self._weights.values()),
            precision=self._scheme(),
            notes=tuple(self._notes()),
        )

    def end_in_image(self, folder: Path, component: Component, output: str, values: ValueRange) -> Component | None:
        """Leave the package as it is, which serves where it ends in 0–255 already."""
        return component if values == PIXELS else None

    def _copy(self, destination: Path) -> list[str]:
        """Copy every file; one whose folder for weights is empty is written anew without, since a bundle is files."""
        weights = self._package.weights
        if weights is not None and not any(weights.iterdir()):
            return write_package(destination, self._package.model.read_bytes(), None)
        relative = [file.relative_to(self._path).as_posix() for file in self.files]
        for name in relative:
            (destination / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._path / name, destination / name, follow_symlinks=False)
        return relative

    @property
    def _block(self) -> Any:
        return self._program.block_specializations[self._program.opset]

    def _tensor(self, feature: Any) -> Tensor:
        array = feature.type.multiArrayType
        what = feature.type.WhichOneof("Type")
        dtype, boundary = _TYPES.get(array.dataType, (f"type {array.dataType}", None))
        if what != "multiArrayType" or boundary is None:
            found = dtype if what == "multiArrayType" else what
            raise InputError(
                f"{self._path.name}: {feature.name} is {found}; a runner gives and takes float32 and int32",
                hint=_REMEDY,
            )
        if array.WhichOneof("ShapeFlexibility"):
            raise InputError(
                f"{self._path.name}: {feature.name} has a flexible shape; a bundle's are fixed",
                hint="Convert it with fixed shapes, without coremltools.RangeDim and EnumeratedShapes.",
            )
        shape = tuple(int(size) for size in array.shape) or self._shape_of(feature.name)
        return Tensor(name=feature.name, dtype=dtype, port=Port(name=feature.name, dtype=boundary, shape=shape))

    def _shape_of(self, name: str) -> tuple[int, ...]:
        """Return an output's shape as the program has it: the package's description may leave it out."""
        for output in (output for operation in self._block.operations for output in operation.outputs):
            if output.name == name:
                return tuple(int(size.constant.size) for size in output.type.tensorType.dimensions)
        return ()

    def _most(self) -> str:
        return max(self._weights, key=lambda kind: self._weights[kind], default="FLOAT32")

    def _scheme(self) -> Precision | EncoderScheme:
        return "int8" if self._most() in ("INT8", "UINT8") else self.precision

    def _notes(self) -> Iterator[str]:
        if set(self._weights) - {"FLOAT32"}:
            yield "weights: " + ", ".join(f"{count:,} {kind.lower()}" for kind, count in self._weights.most_common())


def _weights_by_type(block: Any) -> Counter[str]:
    """Count the values of a program's constants by their type, scales and tables among them."""
    counts: Counter[str] = Counter()
    for operation in block.operations:
        values = [operation.attributes["val"]] if operation.type == "const" else _blobs(operation)
        for value in values:
            kind = MIL_pb2.DataType.Name(value.type.tensorType.dataType)
            if kind in _WEIGHTS:
                counts[kind] += math.prod(int(size.constant.size) for size in value.type.tensorType.dimensions)
    return counts


def _blobs(operation: Any) -> list[Any]:
    """Return the constants that stand in an operation: compressed weights have no name of their own."""
    bindings = [binding for argument in operation.inputs.values() for binding in argument.arguments]
    values = [binding.value for binding in bindings if binding.WhichOneof("binding") == "value"]
    values += list(operation.attributes.values())
    return [value for value in values if value.WhichOneof("value") == "blobFileValue"]
