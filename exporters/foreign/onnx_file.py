"""ONNX files from elsewhere: read without their external weights, which are only ever copied."""

from __future__ import annotations

import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from profiler.bundle_files import inside
from profiler.errors import InputError, InvalidRecord, MissingSource

_PROTOBUF_LIMIT_BYTES = 2**31 - 1
_T = onnx.TensorProto
_WEIGHTS = {_T.FLOAT, _T.FLOAT16, _T.BFLOAT16, _T.DOUBLE, _T.INT8, _T.UINT8, _T.INT4, _T.UINT4,
            _T.FLOAT8E4M3FN, _T.FLOAT8E4M3FNUZ, _T.FLOAT8E5M2, _T.FLOAT8E5M2FNUZ}  # fmt: skip


def read_model(path: Path) -> Any:
    """Read a model's graph. Raises InvalidRecord for what is none."""
    if path.is_symlink():
        raise InputError(f"{path} is a link; a bundle is made of plain files", hint=f"Copy it: cp -L {path} ELSEWHERE")
    if path.stat().st_size > _PROTOBUF_LIMIT_BYTES:
        raise InvalidRecord(
            f"{path} is larger than the 2 GB of a protobuf",
            hint="Save its weights beside it: onnx.save(model, path, save_as_external_data=True)",
        )
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's own DecodeError is not public in all its versions
        raise InvalidRecord(f"{path} is no ONNX model: {error}") from error
    if not model.graph.node or not model.graph.output:
        raise InvalidRecord(f"{path} holds no ONNX graph with an output")
    return model


def write_model(model: Any, path: Path) -> None:
    """Write a graph whose external weights stay where they are. Raises InputError beyond 2 GB."""
    try:
        path.write_bytes(model.SerializeToString())
    except Exception as error:  # as above, and a ValueError where the size is refused
        raise InputError(
            f"{path.name} with casts at its boundary is more than the 2 GB of a protobuf",
            hint="Save its weights beside it: onnx.save(model, path, save_as_external_data=True)",
        ) from error


def external_files(model: Any, path: Path) -> dict[str, Path]:
    """Return the files that hold weights, by the names that the graph has for them.

    Raises InvalidRecord for a name that leads out of the model's folder or to a link, and for weights that are not
    in their file; MissingSource for a file that is not there.
    """
    found: dict[str, Path] = {}
    for tensor in tensors(model.graph):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if location not in found:
            found[location] = _external_file(location, path)
        _check_lies_in(tensor, entries, found[location])
    return found


def copy_files(external: dict[str, Path], folder: Path) -> list[str]:
    """Copy external weights below a folder, under the names that the graph has for them."""
    for location, source in external.items():
        target = folder / location
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target, follow_symlinks=False)
    return list(external)


def tensors(graph: Any) -> Iterator[Any]:
    """Yield every constant of a graph and of the graphs in its nodes."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield from [attribute.t] if attribute.HasField("t") else []
            yield from attribute.tensors
            for inner in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from tensors(inner)


def weights_by_type(model: Any) -> Counter[str]:
    """Count weights by their type; whole numbers of 32 bits and more are shapes and indices."""
    counts: Counter[str] = Counter()
    for tensor in tensors(model.graph):
        if tensor.data_type in _WEIGHTS:
            size = 1
            for length in tensor.dims:
                size *= length
            counts[onnx.TensorProto.DataType.Name(tensor.data_type).lower()] += size
    return counts


def _external_file(location: str, path: Path) -> Path:
    try:
        file = inside(path.parent, location)
    except InvalidRecord as error:
        raise InvalidRecord(
            f"{path} has weights in {location!r}, which leads out of its folder or is a link",
            hint="Save it again: onnx.save(model, path, save_as_external_data=True)",
        ) from error
    if not file.exists():
        raise MissingSource(f"{path} has weights in {location!r}, which is not beside it")
    if not stat.S_ISREG(file.lstat().st_mode):
        raise InvalidRecord(f"{path} has weights in {location!r}, which is no plain file")
    return file


def _check_lies_in(tensor: Any, entries: dict[str, str], file: Path) -> None:
    try:
        start, length = int(entries.get("offset", 0)), int(entries.get("length", 0))
    except ValueError as error:
        raise InvalidRecord(f"{file}: where the weight {tensor.name!r} lies is no number") from error
    if min(start, length) < 0 or start + length > file.stat().st_size:
        raise InvalidRecord(f"{file} is too short for the weight {tensor.name!r}: it may be cut off")
