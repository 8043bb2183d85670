"""Free space on a phone: `df`, as toybox, toolbox and busybox print it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from profiler.devices.android.numerals import decimal
from profiler.devices.android.unavailable import Unavailable, refused

COMMAND = "df -k"

_BLOCKS = re.compile(r"(\d+)(K?)-bl(?:oc)?ks", re.IGNORECASE)
_AMOUNT = re.compile(r"(-?[\d.,٫]+)([KMGT]?)i?B?")
_SUFFIXES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class FileSystem(NamedTuple):
    """One mounted file system; `free_bytes` is what a program may still write, less than total minus used."""

    source: str
    mounted_on: str
    total_bytes: int
    used_bytes: int
    free_bytes: int


def read_file_systems(text: str) -> tuple[FileSystem, ...] | Unavailable:
    """Read what `df [-k|-h] [path …]` printed, in its order."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.split()[:1] == ["Filesystem"]), None)
    if start is None:
        return Unavailable(refused(text) or "no table in what df printed", text)
    found = tuple(_file_systems(lines[start], lines[start + 1 :]))
    return found or Unavailable(refused(text) or "no file system in what df printed", text)


def _file_systems(heading: str, lines: list[str]) -> Iterator[FileSystem]:
    unit = _unit(heading)
    source: list[str] = []
    for line in lines:
        words = [*source, *line.split()]
        # A long name stands alone on its line, and the numbers follow on the next (busybox, old toybox).
        source = words if len(words) == 1 else []
        row = _row(words, unit, old="Blksize" in heading)
        if row is not None:
            yield row


def _unit(heading: str) -> int:
    """Return the bytes that a number without a suffix counts."""
    match = _BLOCKS.search(heading)
    value = decimal(match[1]) if match else None
    return 1 if match is None or value is None else int(value) * (1024 if match[2] else 1)


def _row(words: list[str], unit: int, *, old: bool) -> FileSystem | None:
    """Read `source total used free [share] mount`; toolbox names the mount first and has a block size last."""
    if len(words) < 5:
        return None
    amounts = [_bytes(word, unit) for word in words[1:4]]
    total, used, free = amounts
    if total is None or used is None or free is None:
        return None
    mount = words[0] if old else " ".join(words[5:] if words[4].endswith("%") or words[4] == "-" else words[4:])
    return FileSystem(words[0], mount, total, used, free)


def _bytes(text: str, unit: int) -> int | None:
    match = _AMOUNT.fullmatch(text)
    value = decimal(match[1]) if match else None
    if match is None or value is None or value < 0:
        return None
    return round(value * (_SUFFIXES[match[2]] if match[2] else unit))
