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
from profiler.records.recipe import BITS_PER_WEIGHT, Recipe

# What making a component takes at least (docs/exporters.md has what it took): a process with its toolchain; for
# weights that stay floats, themselves in float32 and what the toolchain or an engine makes of them; coded weights
# hardly more than once, and the largest of them twice in float32, as it is read and as it is run.
_PROCESS_BYTES = 800_000_000
_PER_FLOAT = 8
_CODES_TIMES = 1.1
_PER_WEIGHT_OF_THE_LARGEST = 8
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
            f"{largest.name} ({largest.parameters / 1e6:,.0f} M parameters as {largest.precision(recipe)}) takes at "
            f"least {format_bytes(needed)} of memory to export for {recipe.runtime}; "
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
    """Estimate what making a component takes at least."""
    form = part.precision(recipe)
    if not part.encodes_text or form == "fp32":
        return _PROCESS_BYTES + _PER_FLOAT * part.parameters
    codes = _CODES_TIMES * part.parameters * BITS_PER_WEIGHT[form] / 8
    return round(_PROCESS_BYTES + codes + _PER_WEIGHT_OF_THE_LARGEST * _largest(part))


def _largest(part: Part) -> int:
    """Count the weights of the largest matrix."""
    return max((weight.numel() for module in part.modules for weight in module.parameters()), default=0)


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
