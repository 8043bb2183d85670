"""Refuses an export that this machine cannot finish, with numbers, before the first minute of work."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

from exporters.parts import Part
from profiler.errors import InputError
from profiler.quantities import format_bytes
from profiler.records.recipe import BITS_PER_WEIGHT, EncoderScheme, Precision, Recipe

# Peak RssAnon + RssShmem of the process that makes a component, in bytes per parameter beyond what the toolchain
# itself takes: the largest of the rows of docs/exporters.md for that runtime and form (benchmarks/export_matrix.py),
# rounded up.
_BASE_BYTES = 1_300_000_000
_PER_PARAMETER: dict[str, dict[Precision | EncoderScheme, float]] = {
    "onnx": {"fp32": 9.0, "fp16": 9.0, "int8": 5.0, "nf4": 3.0},
    "executorch": {"fp32": 13.0, "fp16": 13.0, "int8": 8.0, "nf4": 5.0},
    "coreml": {"fp32": 13.0, "fp16": 9.0, "int8": 5.0, "nf4": 4.0},
}
_OTHERS = 13.0  # a plug-in's runtime: as bad as the worst here
# What is written besides the bundle: a toolchain's own files of the component at hand.
_SPARE_DISK_BYTES = 200_000_000
_CGROUPS = (
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
)


class Room(NamedTuple):
    """What a machine has free, in bytes."""

    memory_bytes: int
    disk_bytes: int


def room_for(destination: Path, waiting: Path) -> Room:
    """Look at this machine's memory, within the limit of a container, and at the disk of a destination's folder.

    What an interrupted export left `waiting` is not written again, so that its bytes are as good as free.
    """
    memory = min([psutil.virtual_memory().available, *_left_in_cgroups()])
    made = sum(path.stat().st_size for path in waiting.rglob("*") if path.is_file())
    return Room(memory, shutil.disk_usage(destination.parent).free + made)


def check_room(parts: Iterable[Part], recipe: Recipe, room: Room) -> None:
    """Raise InputError where the largest component would not fit into memory, or all of them not on the disk."""
    parts = list(parts)
    largest = max(parts, key=lambda part: memory_bytes(part, recipe))
    needed = memory_bytes(largest, recipe)
    if needed > room.memory_bytes:
        raise InputError(
            f"{largest.name} ({largest.parameters / 1e6:,.0f} M parameters as {largest.precision(recipe)}) takes about "
            f"{format_bytes(needed)} of memory to export for {recipe.runtime}; "
            f"{format_bytes(room.memory_bytes)} are free",
            hint=_less_memory(largest, recipe),
        )
    written = disk_bytes(parts, recipe)
    if written > room.disk_bytes:
        raise InputError(
            f"the bundle and what is written on the way take about {format_bytes(written)}; "
            f"{format_bytes(room.disk_bytes)} are free on the disk",
            hint="Name a folder on another disk with --out.",
        )


def memory_bytes(part: Part, recipe: Recipe) -> int:
    """Estimate the peak of making a component."""
    form = part.precision(recipe)
    per_parameter = _PER_PARAMETER.get(recipe.runtime, {}).get(form, _OTHERS)
    return round(_BASE_BYTES + per_parameter * part.parameters)


def disk_bytes(parts: Iterable[Part], recipe: Recipe) -> int:
    """Estimate what is written: every component once, and the largest once more while its toolchain writes it."""
    sizes = [part.parameters * BITS_PER_WEIGHT[part.precision(recipe)] / 8 for part in parts]
    return round(sum(sizes) + max(sizes)) + _SPARE_DISK_BYTES


def _less_memory(part: Part, recipe: Recipe) -> str:
    if part.encodes_text and recipe.text_encoder in ("fp32", "fp16"):
        return "Take fewer bits for the text encoder, as --text-encoder int8 or nf4, or a machine with more memory."
    return "Close other programs, or take a machine with more memory."


def _left_in_cgroups() -> list[int]:
    found = []
    for limit, usage in _CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # "max", or no such control group
            found.append(int(limit.read_text()) - int(usage.read_text()))
    return found
