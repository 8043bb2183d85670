"""The constants of a MIL program: small ones as they are, large ones read and decoded each time they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from coremltools.proto import MIL_pb2
from torch import Tensor

from exporters.mil_ops import OPERATIONS, Unsupported
from exporters.mil_weights import Blobs
from profiler.runner.engines.coreml_package import Package, blob_path

CODED = "constexpr_"  # how the operations begin that decode constants
_IMMEDIATE = {"floats": torch.float32, "ints": torch.int32, "bools": torch.bool}
# In the specification itself small values of these types are packed into bytes.
_PACKED = {"FLOAT16": np.float16, "INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16, "UINT16": np.uint16}
# How far each input of a decoding spans: these have a row per row of its result, or one for all of them.
_BY_ROW = ("data", "scale", "offset", "indices", "source_val")


class _Blob(NamedTuple):
    """Where a constant lies in a weight file."""

    file: Blobs
    offset: int
    dtype: str
    shape: tuple[int, ...]

    def read(self, rows: Tensor | None) -> Tensor:
        return self.file.read(self.offset, self.dtype, self.shape, rows)


class Coded(NamedTuple):
    """A constant that an operation decodes from others; `half` says that float16 holds the result."""

    kind: str
    compute: Callable[..., Tensor]
    bind: Mapping[str, str]
    half: bool
    rows: int


class Constants(Mapping[str, Any]):
    """A program's constants by name, in a weight file as they are stored; what is decoded comes as float32.

    Nothing that is read from a file is kept, so that memory holds one large constant at a time.
    """

    def __init__(self, package: Package) -> None:
        self._package = package
        self._files: dict[str, Blobs] = {}
        self._found: dict[str, Any] = {}
        self.coded: dict[str, Coded] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a tensor, or a text."""
        return self._read(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter((*self._found, *self.coded))

    def __len__(self) -> int:
        return len(self._found) + len(self.coded)

    def __contains__(self, name: object) -> bool:
        return name in self._found or name in self.coded

    def rows(self, name: str, rows: Tensor) -> Tensor:
        """Return some rows of a tensor, int64 [n], without the others being read."""
        found: Tensor = self._read(name, rows)
        return found

    def add(self, name: str, value: Any) -> None:
        """Take a value of the specification. Raises Unsupported or BrokenBlob."""
        if value.type.WhichOneof("type") != "tensorType":
            raise Unsupported(f"a constant that is a {value.type.WhichOneof('type')}")
        kind = value.type.tensorType
        dtype = MIL_pb2.DataType.Name(kind.dataType)
        shape = tuple(int(dimension.constant.size) for dimension in kind.dimensions)
        if value.WhichOneof("value") == "blobFileValue":
            blob = _Blob(self._file(value.blobFileValue.fileName), value.blobFileValue.offset, dtype, shape)
            blob.file.check(blob.offset, dtype, shape)
            self._found[name] = blob
        else:
            self._found[name] = _immediate(value.immediateValue.tensor, dtype, shape)

    def decode(self, operation: Any, bind: Mapping[str, str]) -> None:
        """Take the result of an operation that decodes constants, which must be there."""
        kind = operation.outputs[0].type.tensorType
        if missing := next((name for name in bind.values() if name not in self), None):
            raise Unsupported(f"{operation.type} of {missing}, which is no constant")
        self.coded[operation.outputs[0].name] = Coded(
            kind=operation.type,
            compute=OPERATIONS[operation.type],
            bind=bind,
            half=kind.dataType == MIL_pb2.FLOAT16,
            rows=int(kind.dimensions[0].constant.size) if kind.dimensions else 1,
        )

    def _file(self, name: str) -> Blobs:
        if name not in self._files:
            self._files[name] = Blobs(blob_path(self._package, name))
        return self._files[name]

    def _read(self, name: str, rows: Tensor | None) -> Any:
        if name in self.coded:
            return self._decoded(name, rows)
        found = self._found[name]
        if isinstance(found, _Blob):
            return found.read(rows)
        return found if rows is None else found[rows]

    def _decoded(self, name: str, rows: Tensor | None) -> Tensor:
        coded = self.coded[name]
        given = {port: self._input(coded, port, each, rows) for port, each in coded.bind.items()}
        try:
            found = coded.compute(**given)
        except Exception as error:  # an unknown input is a TypeError, a shape that does not fit torch's own
            raise Unsupported(f"{coded.kind} ({name}): {error}") from error
        return rounded(found) if coded.half else found

    def _input(self, coded: Coded, port: str, name: str, rows: Tensor | None) -> Any:
        whole = rows is None or port not in _BY_ROW
        value = self._read(name, None if whole else self._rows_of(name, coded.rows, rows))
        return widened(value)

    def _rows_of(self, name: str, count: int, rows: Tensor | None) -> Tensor | None:
        """Return the rows of a decoding's input that some rows of its result come from."""
        found = self._found.get(name)
        have = self.coded[name].rows if found is None else found.shape[0]
        if rows is None or have == 1:
            return None
        if count % have:
            raise Unsupported(f"{count} rows from {have}")
        return rows // (count // have)


def rounded(value: Tensor) -> Tensor:
    """Round to what float16 can hold; what is too large becomes infinite."""
    return value.half().float()


def widened(value: Any) -> Any:
    """Return a stored value as operations take it."""
    return value.float() if isinstance(value, Tensor) and value.dtype == torch.float16 else value


def _immediate(tensor: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    field = tensor.WhichOneof("value")
    if field == "strings":
        return str(tensor.strings.values[0])
    if field == "bytes" and dtype in _PACKED:
        values = np.frombuffer(tensor.bytes.values, dtype=_PACKED[dtype])
        values = values.astype(np.int32) if dtype == "UINT16" else values.copy()
        return torch.from_numpy(values).reshape(shape)
    if field not in _IMMEDIATE:
        raise Unsupported(f"a constant of {dtype} given as {field}")
    # A tensor without values is all zero in this format's way of leaving defaults out.
    return torch.tensor(list(getattr(tensor, field).values), dtype=_IMMEDIATE[field]).reshape(shape)
