"""Records to JSON and back, with errors that name the file and the field."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from profiler.errors import InternalError, InvalidRecord, MissingSource
from profiler.records.record import SCHEMA_VERSION

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


def read(path: Path, kind: type[T]) -> T:
    """Read a record from a JSON file. Raises MissingSource or InvalidRecord."""
    return decode(_bytes_of(path), kind, where=str(path))


def read_toml(path: Path, kind: type[T]) -> T:
    """Read a record from a TOML file. Raises MissingSource or InvalidRecord."""
    return _decoded(msgspec.toml.decode, _bytes_of(path), kind, str(path))


def content_sha256(record: Any) -> str:
    """Return the sha256 of a record's canonical bytes."""
    return hashlib.sha256(encode_pretty(record)).hexdigest()


def _bytes_of(path: Path) -> bytes:
    try:
        if not (stat.S_ISREG(mode := path.stat().st_mode) or stat.S_ISDIR(mode)):
            raise MissingSource(f"cannot read {path}: not a plain file")  # a pipe would be waited for without end
        return path.read_bytes()
    except OSError as error:
        raise MissingSource(f"cannot read {path}: {error.strerror}") from error


class _Versioned(msgspec.Struct):
    schema_version: int | None = None


def _decoded(decoder: Callable[..., Any], data: bytes, kind: type[T], where: str) -> T:
    _check_version(decoder, data, where)
    try:
        record: T = decoder(data, type=kind)
    except _UNREADABLE as error:
        raise InvalidRecord(f"{where}: not a valid {_title(kind)}: {error}") from error
    return record


def _check_version(decoder: Callable[..., Any], data: bytes, where: str) -> None:
    try:
        version = decoder(data, type=_Versioned).schema_version
    except _UNREADABLE:
        return  # the real decoder says it better
    if version is not None and version > SCHEMA_VERSION:
        raise InvalidRecord(
            f"{where}: written in format {version}, this version reads up to {SCHEMA_VERSION}",
            hint="Install a newer ondevice-profiler.",
        )


def _title(kind: Any) -> str:
    return getattr(kind, "__name__", "record")
