"""Readings that cannot be true: what follows from them is withheld, and not given as a number."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from profiler.quantities import format_bytes
from profiler.records.run import IterationSample, Run


def clock_fault(run: Run) -> str | None:
    """Say which image's times cannot be: none takes no time, and none begins before the last one ended."""
    for process in dict.fromkeys(sample.process for sample in run.iterations):
        images = [sample for sample in run.iterations if sample.process == process]
        fault = next(filter(None, map(_duration_fault, images)), None) or _order_fault(images)
        if fault:
            return fault
    return None


def _duration_fault(image: IterationSample) -> str | None:
    if image.duration_ns <= 0:
        return f"{_name(image)} took {image.duration_ns} ns"
    if any(stage.duration_ns < 0 for stage in image.stages):
        return f"a stage of {_name(image)} took less than no time"
    if sum(stage.duration_ns for stage in image.stages) > image.duration_ns:
        return f"the stages of {_name(image)} take longer than the whole"
    return None


def _order_fault(images: Iterable[IterationSample]) -> str | None:
    for before, after in pairwise(images):
        if after.start_boot_ns < before.start_boot_ns + before.duration_ns:
            return f"{_name(after)} began before {_name(before)} had ended"
    return None


def _name(image: IterationSample) -> str:
    return f"{image.phase} image {image.iteration}"


def memory_fault(run: Run) -> str | None:
    """Say why a peak cannot be: the weights that are loaded together fit into no less."""
    floor = resident_floor_bytes(run)
    for process in run.processes:
        peak = process.memory.peak_bytes if process.memory and process.outcome == "completed" else None
        if peak is not None and peak < floor:
            return (
                f"process {process.process} reports a peak of {format_bytes(peak)}, "
                f"though {format_bytes(floor)} of weights were loaded at once"
            )
    return None


def resident_floor_bytes(run: Run) -> int:
    """Return the bytes of component files that the recipe keeps loaded at the same time."""
    sizes = run.bundle.size_by_component.values()
    return sum(sizes) if run.recipe.load_policy == "resident" else max(sizes, default=0)
