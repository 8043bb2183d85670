"""Core ML's weight files (MIL blob storage, version 2): a header, then per constant 64 bytes that say where it lies."""

from __future__ import annotations

import math
import struct
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Bytes = npt.NDArray[np.uint8]

_VERSION, _SENTINEL = 2, 0xDEADBEEF
_HEADER = struct.Struct("<II")  # constants, version; zeros up to 64 bytes
_RECORD = struct.Struct("<IIQQQ")  # sentinel, type, bytes, offset, unused bits at the end; zeros up to 64 bytes
_ALIGNMENT = 64

# MIL's name of a type → its number in a blob, its bits, and what it is read as.
_TYPES: dict[str, tuple[int, int, npt.DTypeLike]] = {
    "FLOAT16": (1, 16, np.float16),
    "FLOAT32": (2, 32, np.float32),
    "UINT8": (3, 8, np.uint8),
    "INT8": (4, 8, np.int8),
    "INT16": (6, 16, np.int16),
    "UINT16": (7, 16, np.uint16),
    "UINT4": (11, 4, np.uint8),
    "INT32": (14, 32, np.int32),
}


class BrokenBlob(Exception):
    """A weight file that is cut short, or holds something else than the model says."""


class Blobs:
    """One weight file, mapped and not read: what a constant is not asked for costs no memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        size = path.stat().st_size
        if size < _ALIGNMENT:
            raise BrokenBlob(f"{path.name} is cut short: {size} bytes")
        self._bytes = np.memmap(
            path, dtype=np.uint8, mode="c"
        )  # private: torch warns of arrays that it may not write to
        version = int.from_bytes(self._bytes[4:8].tobytes(), "little")
        if version != _VERSION:
            raise BrokenBlob(f"{path.name} is of version {version}; {_VERSION} is known")

    def read(self, offset: int, dtype: str, shape: Sequence[int], rows: torch.Tensor | None = None) -> torch.Tensor:
        """Return a constant as it is stored, or those of its `rows` that are asked for, int64 [n].

        Four-bit values come unpacked, one a byte. Raises BrokenBlob.
        """
        data = self.check(offset, dtype, shape)
        _, bits, read_as = _TYPES[dtype]
        if rows is None:
            return _values(data, bits, read_as, shape)
        if math.prod(shape[1:]) * bits % 8:  # rows that share a byte
            return _values(data, bits, read_as, shape)[rows]
        return _values(data.reshape(shape[0], -1)[rows.numpy()], bits, read_as, (len(rows), *shape[1:]))

    def check(self, offset: int, dtype: str, shape: Sequence[int]) -> Bytes:
        """Return a constant's bytes, still on disk. Raises BrokenBlob."""
        if dtype not in _TYPES:
            raise BrokenBlob(f"{self._path.name} holds {dtype}, which is not known here")
        code, bits, _ = _TYPES[dtype]
        return self._data(offset, code, dtype, (math.prod(shape) * bits + 7) // 8)

    def _data(self, offset: int, code: int, dtype: str, size: int) -> Bytes:
        what = f"{self._path.name} at {offset}"
        if not 0 <= offset <= len(self._bytes) - _RECORD.size:
            raise BrokenBlob(f"{what} is cut short: it ends at {len(self._bytes)}")
        found = _RECORD.unpack(self._bytes[offset : offset + _RECORD.size].tobytes())
        sentinel, found_code, found_size, start, _ = found
        if sentinel != _SENTINEL or (found_code, found_size) != (code, size):
            raise BrokenBlob(f"{what} does not hold {size} bytes of {dtype}")
        if start + size > len(self._bytes):
            raise BrokenBlob(f"{what} is cut short: {size} bytes from {start} on, but it ends at {len(self._bytes)}")
        return self._bytes[start : start + size]


def _values(data: Bytes, bits: int, read_as: npt.DTypeLike, shape: Sequence[int]) -> torch.Tensor:
    flat = data.reshape(-1)
    values: npt.NDArray[Any] = _unpacked(flat, math.prod(shape)) if bits == 4 else np.frombuffer(flat, dtype=read_as)
    values = values.astype(np.int32) if read_as is np.uint16 else values
    with warnings.catch_warnings():  # that torch could write into what is mapped read-only; nothing here writes
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(values.reshape(tuple(shape)))


def _unpacked(data: Bytes, count: int) -> Bytes:
    """Take the low half of each byte first."""
    values = np.empty((len(data), 2), dtype=np.uint8)
    np.bitwise_and(data, 15, out=values[:, 0])
    np.right_shift(data, 4, out=values[:, 1])
    return values.reshape(-1)[:count]


class BlobWriter:
    """Adds constants to a weight file, which is made where it is missing; memory is what one piece takes."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b" if path.exists() else "w+b")
        header = self._file.read(_HEADER.size)
        self._count = _HEADER.unpack(header)[0] if header else 0

    def __enter__(self) -> BlobWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self._file.seek(0)
            self._file.write(_HEADER.pack(self._count, _VERSION).ljust(_ALIGNMENT, b"\0"))

    def write(self, dtype: str, size_bytes: int, pieces: Iterable[npt.NDArray[Any]]) -> int:
        """Add a constant of whole bytes, given in pieces, and return the offset by which a model names it."""
        offset = self._aligned_end()
        start = offset + _ALIGNMENT
        record = _RECORD.pack(_SENTINEL, _TYPES[dtype][0], size_bytes, start, 0)
        self._file.write(record.ljust(_ALIGNMENT, b"\0"))
        for piece in pieces:
            self._file.write(np.ascontiguousarray(piece).data)
        if self._file.tell() != start + size_bytes:
            raise BrokenBlob(f"a constant of {size_bytes} bytes came as {self._file.tell() - start}")
        self._count += 1
        return offset

    def _aligned_end(self) -> int:
        """Go to where the next constant begins."""
        end = max(self._file.seek(0, 2), _ALIGNMENT)
        offset = -(-end // _ALIGNMENT) * _ALIGNMENT
        self._file.truncate(offset)
        return self._file.seek(offset)
