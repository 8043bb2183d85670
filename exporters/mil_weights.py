"""Core ML's weight files (MIL blob storage, version 2): a header, then per constant 64 bytes that say where it lies."""

from __future__ import annotations

import math
import struct
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

_VERSION, _SENTINEL = 2, 0xDEADBEEF
_RECORD = struct.Struct("<IIQQQ")  # sentinel, type, bytes, offset, unused bits at the end

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
        if size < 2 * _RECORD.size:
            raise BrokenBlob(f"{path.name} is cut short: {size} bytes")
        self._bytes = np.memmap(
            path, dtype=np.uint8, mode="c"
        )  # private: torch warns of arrays that it may not write to
        version = int.from_bytes(self._bytes[4:8].tobytes(), "little")
        if version != _VERSION:
            raise BrokenBlob(f"{path.name} is of version {version}; {_VERSION} is known")

    def read(self, offset: int, dtype: str, shape: Sequence[int]) -> torch.Tensor:
        """Return a constant as it is stored; four-bit values come unpacked, one a byte. Raises BrokenBlob."""
        if dtype not in _TYPES:
            raise BrokenBlob(f"{self._path.name} holds {dtype}, which is not known here")
        code, bits, read_as = _TYPES[dtype]
        count = math.prod(shape)
        data = self._data(offset, code, dtype, (count * bits + 7) // 8)
        values = _unpacked(data, count) if bits == 4 else np.frombuffer(data, dtype=read_as)
        values = values.astype(np.int32) if read_as is np.uint16 else values
        with warnings.catch_warnings():  # that torch could write into what is mapped read-only; nothing here writes
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(values.reshape(tuple(shape)))

    def _data(self, offset: int, code: int, dtype: str, size: int) -> npt.NDArray[np.uint8]:
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


def _unpacked(data: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.uint8]:
    """Take the low half of each byte first."""
    return np.stack([data & 15, data >> 4], axis=-1).reshape(-1)[:count]
