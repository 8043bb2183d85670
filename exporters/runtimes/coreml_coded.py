"""Coded weights in Core ML: coremltools converts a program that only names them, and they are put in afterwards.

coremltools unpacks four-bit values to one a byte, and its passes hash, cast and copy constants; of a text encoder of
billions of weights that is several times its file. A name costs nothing: `constexpr_held` is an operation of our own
that coremltools takes for a compressed constant. In the finished specification it becomes MIL's own operations, and
codes and scales go into the weight file as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from coremltools.converters.mil._deployment_compatibility import AvailableTarget
from coremltools.converters.mil.mil import Builder, Operation, types
from coremltools.converters.mil.mil.input_type import InputSpec, TensorInputType
from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry
from coremltools.proto import MIL_pb2

from exporters.mil_weights import BlobWriter
from exporters.quantize import nf4

Array = npt.NDArray[Any]

_HELD = "constexpr_held"
_FILE = "@model_path/weights/weight.bin"
_PIECE = 1 << 24
_DTYPES = {MIL_pb2.FLOAT16: np.float16, MIL_pb2.FLOAT32: np.float32}


class constexpr_held(Operation):  # type: ignore[misc]  # noqa: N801 - its name is the operation's
    """A weight that is held elsewhere, under `key`; as precise as `like`, which follows the program's precision."""

    input_spec = InputSpec(
        key=TensorInputType(const=True, type_domain=types.int32),
        shape=TensorInputType(const=True, type_domain=types.int32),
        like=TensorInputType(const=True, type_domain="T"),
    )
    type_domains = {"T": (types.fp16, types.fp32)}  # noqa: RUF012 - as coremltools declares its own

    def type_inference(self) -> Any:
        """Return the decoded weight's type."""
        return types.tensor(self.like.dtype, tuple(int(size) for size in self.shape.val))


SSAOpRegistry.register_op(constexpr_held, opset_version=AvailableTarget.iOS18, allow_override=True)


def with_weights(selects: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Let a coded weight be as precise as the operations that take it, of which `selects` tells."""

    def selected(operation: Any) -> bool:
        if operation.op_type != _HELD:
            return selects(operation)
        return all(selects(user) for output in operation.outputs for user in output.child_ops)

    return selected


class _Entry(NamedTuple):
    """One weight: what writes its operations, and the arrays that it is coded in."""

    write: Callable[[_Place, tuple[Array, ...]], Iterator[Any]]
    arrays: tuple[Array, ...]


class CodedWeights:
    """The coded weights of one program, from its conversion until they are written."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._keys: dict[tuple[int, ...], int] = {}

    def nf4(self, name: str, shape: Sequence[int], codes: Array, absmax: Array) -> Any:
        """Emit a weight in NF4: two codes a byte, the first in the high half, and a scale per block of its rows."""
        if shape[-1] % nf4.BLOCK:
            raise ValueError(f"{name}: NF4 rows of {shape[-1]} do not end at a block's end")
        return self._emit(name, shape, _Entry(_write_nf4, (codes, absmax)))

    def int8(self, name: str, codes: Array, scales: Array) -> Any:
        """Emit a weight in symmetric linear quantization with one scale a row."""
        return self._emit(name, codes.shape, _Entry(_write_int8, (codes, scales)))

    def half(self, name: str, values: Array) -> Any:
        """Emit a weight of half precision."""
        return self._emit(name, values.shape, _Entry(_write_half, (values,)))

    def _emit(self, name: str, shape: Sequence[int], entry: _Entry) -> Any:
        address = tuple(array.__array_interface__["data"][0] for array in entry.arrays)
        key = self._keys.setdefault(address, len(self._entries))  # what layers share is there once
        if key == len(self._entries):
            self._entries.append(entry)
        return Builder.constexpr_held(key=np.int32(key), shape=np.array(shape, np.int32), like=np.float32(1), name=name)

    def put_into(self, specification: Any, weights: Path) -> None:
        """Replace the names in a finished program by MIL's own operations, and add the weights to its file."""
        if not self._entries:
            return
        weights.parent.mkdir(parents=True, exist_ok=True)
        with BlobWriter(weights) as blobs:
            main = specification.mlProgram.functions["main"]
            block = main.block_specializations[main.opset]
            written = [each for operation in block.operations for each in self._replaced(operation, blobs)]
            del block.operations[:]
            block.operations.extend(written)

    def _replaced(self, operation: Any, blobs: BlobWriter) -> Iterator[Any]:
        if operation.type != _HELD:
            yield operation
            return
        key = operation.inputs["key"].arguments[0].value.immediateValue.tensor.ints.values[0]
        entry = self._entries[key]
        yield from entry.write(_Place(operation, blobs), entry.arrays)


class _Place:
    """Where a name stands in a program: what takes it goes on taking its output."""

    def __init__(self, operation: Any, blobs: BlobWriter) -> None:
        self._blobs = blobs
        self.name = operation.attributes["name"]
        self.output = operation.outputs[0]
        kind = self.output.type.tensorType
        self.dtype = kind.dataType
        self.shape = [int(dimension.constant.size) for dimension in kind.dimensions]

    def floats(self, values: Array) -> Any:
        """Write values in the program's own precision."""
        return self.value(values.astype(_DTYPES[self.dtype], copy=False), self.dtype)

    def value(self, values: Array, dtype: int) -> Any:
        """Write values of whole bytes."""
        return self.stored(dtype, values.shape, values.nbytes, _pieces(values))

    def stored(self, dtype: int, shape: Sequence[int], size_bytes: int, pieces: Iterator[Array]) -> Any:
        """Write values given in pieces, and return what stands for them."""
        offset = self._blobs.write(MIL_pb2.DataType.Name(dtype), size_bytes, pieces)
        found = MIL_pb2.Value(type=_tensor_type(dtype, shape))
        found.blobFileValue.fileName, found.blobFileValue.offset = _FILE, offset
        return found

    def operation(self, kind: str, **inputs: Any) -> Any:
        """Make the operation whose output takes the name's place."""
        return _operation(kind, self.name, self.output, inputs)

    def before(self, kind: str, ending: str, **inputs: Any) -> Any:
        """Make an operation whose result has the same type, and a name of its own."""
        name, output = MIL_pb2.Value(), MIL_pb2.NamedValueType()
        name.CopyFrom(self.name)
        name.immediateValue.tensor.strings.values[0] += ending
        output.CopyFrom(self.output)
        output.name += ending
        return _operation(kind, name, output, inputs)


def _write_nf4(place: _Place, arrays: tuple[Array, ...]) -> Iterator[Any]:
    """Write a table of 16 levels and one scale per 64 weights of a row."""
    codes, absmax = arrays
    *rows, width = place.shape
    book = np.asarray(nf4.CODE_BOOK, dtype=np.float32).reshape(*[1] * len(place.shape), len(nf4.CODE_BOOK), 1)
    indices = place.stored(MIL_pb2.UINT4, place.shape, codes.nbytes, map(_low_half_first, _pieces(codes)))
    levels = place.before("constexpr_lut_to_dense", "_levels", indices=indices, lut=place.floats(book))
    scale = place.floats(absmax.reshape(*rows, width // nf4.BLOCK))
    yield levels
    yield place.operation("constexpr_blockwise_shift_scale", data=levels.outputs[0].name, scale=scale)


def _write_int8(place: _Place, arrays: tuple[Array, ...]) -> Iterator[Any]:
    codes, scales = arrays
    scale = place.floats(scales.reshape(-1, *[1] * (codes.ndim - 1)))
    yield place.operation("constexpr_blockwise_shift_scale", data=place.value(codes, MIL_pb2.INT8), scale=scale)


def _write_half(place: _Place, arrays: tuple[Array, ...]) -> Iterator[Any]:
    """Write a constant, or in a program of float32 one that is widened when it is loaded."""
    values = place.value(arrays[0], MIL_pb2.FLOAT16)
    if place.dtype == MIL_pb2.FLOAT16:
        yield MIL_pb2.Operation(type="const", attributes={"name": place.name, "val": values}, outputs=[place.output])
        return
    wide = MIL_pb2.Value(type=MIL_pb2.ValueType(tensorType=MIL_pb2.TensorType(dataType=MIL_pb2.STRING)))
    wide.immediateValue.tensor.strings.values.append("fp32")
    yield place.operation("constexpr_cast", source_val=values, output_dtype=wide)


def _operation(kind: str, name: Any, output: Any, inputs: dict[str, Any]) -> Any:
    made = MIL_pb2.Operation(type=kind, attributes={"name": name}, outputs=[output])
    for port, given in inputs.items():
        binding = made.inputs[port].arguments.add()
        if isinstance(given, str):
            binding.name = given
        else:
            binding.value.CopyFrom(given)
    return made


def _tensor_type(dtype: int, shape: Sequence[int]) -> Any:
    found = MIL_pb2.ValueType()
    found.tensorType.dataType, found.tensorType.rank = dtype, len(shape)
    for size in shape:
        found.tensorType.dimensions.add().constant.size = size
    return found


def _pieces(values: Array) -> Iterator[Array]:
    flat = values.reshape(-1)
    for start in range(0, len(flat), _PIECE):
        yield flat[start : start + _PIECE]


def _low_half_first(packed: Array) -> Array:
    """Turn our order of two codes a byte into MIL's."""
    return (packed << 4) | (packed >> 4)
