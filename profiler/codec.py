"""Records to JSON and back, with errors that name the file and the field."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from profiler.errors import InternalError, InvalidRecord, MissingSource
from profiler.quantities import GIB, MIB
from profiler.records.record import SCHEMA_VERSION

# A manifest or plan has kilobytes, and comes from anywhere. A run of 100 000 images has a hundred megabytes.
MAX_FILE_BYTES, MAX_RUN_BYTES = 64 * MIB, GIB

T = TypeVar("T")

# ValueError: bad UTF-8, and TOML integers of more than 4300 digits. RecursionError: thousands of open brackets.
_UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


def encode(record: Any) -> bytes:
    """Return one line of JSON, without the line's end."""
    return msgspec.json.encode(record)


def encode_pretty(record: Any) -> bytes:
    """Return indented JSON for a file that people read too; the same record gives the same bytes.

    Raises InternalError for a record that could not be read back: JSON has no NaN, and turns it into null.
    """
    data = msgspec.json.encode(record)
    try:
        msgspec.json.decode(data, type=type(record))
    except msgspec.ValidationError as error:
        raise InternalError(f"this {type(record).__name__} could not be read back: {error}") from error
    return msgspec.json.format(data, indent=1) + b"\n"


def decode(data: bytes, kind: type[T], *, where: str) -> T:
    """Read one record; `where` names the file or sender. Raises InvalidRecord."""
    return _decoded(msgspec.json.decode, data, kind, where)


def decode_checked(data: bytes, kind: type[T], *, where: str) -> T:
    """Read one record in which no key stands twice: of two the last would silently count. Raises InvalidRecord."""
    record = decode(data, kind, where=where)
    # What is byte for byte as we would write it has no key twice; only what others wrote is looked through.
    if msgspec.json.encode(record) != msgspec.json.format(data, indent=-1):
        _refuse_doubles(data, where)
    return record


def read(path: Path, kind: type[T], *, limit_bytes: int = MAX_FILE_BYTES) -> T:
    """Read a record from a JSON file. Raises MissingSource or InvalidRecord."""
    return decode_checked(_bytes_of(path, limit_bytes), kind, where=str(path))


def read_toml(path: Path, kind: type[T]) -> T:
    """Read a record from a TOML file. Raises MissingSource or InvalidRecord."""
    return _decoded(msgspec.toml.decode, _bytes_of(path, MAX_FILE_BYTES), kind, str(path))


def content_sha256(record: Any) -> str:
    """Return the sha256 of a record's canonical bytes."""
    return hashlib.sha256(encode_pretty(record)).hexdigest()


def _bytes_of(path: Path, limit_bytes: int) -> bytes:
    try:
        state = path.stat()
        if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
            raise MissingSource(f"cannot read {path}: not a plain file")  # a pipe would be waited for without end
        if state.st_size > limit_bytes:
            raise InvalidRecord(f"{path}: {state.st_size} bytes long; a record of its kind has up to {limit_bytes}")
        return path.read_bytes()
    except OSError as error:
        raise MissingSource(f"cannot read {path}: {error.strerror}") from error


def _refuse_doubles(data: bytes, where: str) -> None:
    import json  # seldom needed

    def check(pairs: list[tuple[str, Any]]) -> None:
        seen = set()
        for key, _ in pairs:
            if key in seen:
                raise InvalidRecord(f"{where}: the key {key!r} stands twice in one object")
            seen.add(key)

    try:
        json.loads(data, object_pairs_hook=check)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"{where}: {error}") from error


class _Versioned(msgspec.Struct):
    schema_version: int | None = None


def _decoded(decoder: Callable[..., Any], data: bytes, kind: type[T], where: str) -> T:
    try:
        record: T = decoder(data, type=kind)
    except _UNREADABLE as error:
        _check_version(decoder, data, where)  # says it better where there is a newer one
        raise InvalidRecord(f"{where}: not a valid {_title(kind)}: {error}") from error
    return record


def _check_version(decoder: Callable[..., Any], data: bytes, where: str) -> None:
    try:
        version = decoder(data, type=_Versioned).schema_version
    except _UNREADABLE:
        return
    if version is not None and version > SCHEMA_VERSION:
        raise InvalidRecord(
            f"{where}: written in format {version}, this version reads up to {SCHEMA_VERSION}",
            hint="Install a newer ondevice-profiler.",
        )


def _title(kind: Any) -> str:
    return getattr(kind, "__name__", "record")
