"""What a foreign graph runs on: tensors from a file, and for the rest noise and zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file

from exporters.foreign.graph import Tensor, listed
from profiler.errors import InputError, InvalidRecord, MissingSource, first_line

Array = npt.NDArray[Any]
_INT32 = np.iinfo(np.int32)


class Inputs(NamedTuple):
    """Tensors by the graph's own names, float32 and int32, and those of them that nobody gave."""

    tensors: dict[str, Array]
    made_up: tuple[str, ...]


def make_inputs(expected: Sequence[Tensor], given: Path | None, seed: int) -> Inputs:
    """Take what a file gives, draw standard normal floats (PCG64) for the rest, and put zeros for whole numbers.

    Raises InputError for tensors that are not the graph's.
    """
    named = {tensor.name: tensor for tensor in expected}
    found = _read(given, named) if given is not None else {}
    generator = np.random.Generator(np.random.PCG64(seed))
    # Drawn for all, so that giving one input leaves the noise of the others as it is.
    made_up = {tensor.name: _make_up(tensor, generator) for tensor in expected}
    return Inputs({**made_up, **found}, tuple(name for name in named if name not in found))


def _make_up(tensor: Tensor, generator: np.random.Generator) -> Array:
    if tensor.port.dtype == "int32":
        return np.zeros(tensor.port.shape, np.int32)
    return generator.standard_normal(tensor.port.shape, dtype=np.float32)


def _read(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Array]:
    if not path.is_file():
        raise MissingSource(f"no inputs at {path}")
    if path.suffix not in _READERS:
        raise InputError(f"{path} is neither .safetensors nor .npz, the files that inputs are read from")
    try:
        found = _READERS[path.suffix](path, expected)
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, EOFError, BadZipFile) as error:
        raise InvalidRecord(f"{path} cannot be read: {first_line(error)}") from error
    return {name: _fitted(path, expected, name, array) for name, array in found.items()}


def _read_safetensors(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Array]:
    return dict(load_file(str(path)))


def _read_npz(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Array]:
    """Read arrays; pickled ones are refused by NumPy, and names that nobody asked for are not unpacked."""
    with path.open("rb") as stream:  # opened here, since NumPy leaves open what it cannot read
        archive = np.load(stream, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it is one array, not an archive of named ones (numpy.savez)")
        return {name: archive[name] if name in expected else np.empty(0) for name in archive.files}


_READERS = {".safetensors": _read_safetensors, ".npz": _read_npz}


def _fitted(path: Path, expected: Mapping[str, Tensor], name: str, array: Array) -> Array:
    """Return an array as the port takes it. Raises InputError where it is another tensor than the graph's."""
    hint = f"The graph takes {listed(list(expected.values()))}."
    if name not in expected:
        raise InputError(f"{path}: the graph has no input {name!r}", hint=hint)
    tensor = expected[name]
    if array.shape != tensor.port.shape or array.dtype.name not in (tensor.dtype, tensor.port.dtype):
        raise InputError(f"{path}: {name!r} is {array.dtype}{list(array.shape)}", hint=hint)
    if tensor.port.dtype == "int32":
        if array.size and (array.min() < _INT32.min or array.max() > _INT32.max):
            raise InputError(f"{path}: {name!r} has values that int32 does not hold")
        return np.ascontiguousarray(array, np.int32)
    with np.errstate(over="ignore"):  # becomes infinite, which is refused
        floats = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(floats).all():
        raise InputError(f"{path}: {name!r} has values that are not finite")
    return floats
