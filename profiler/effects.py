"""What a run's samples say together: the cost of sampling, the effect of a pause, and drift."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TypeVar

from profiler import stats
from profiler.quantities import NS_PER_S
from profiler.records.run import IterationSample, Run

LONG_GAP_NS = NS_PER_S

T = TypeVar("T")


def timed(run: Run) -> list[IterationSample]:
    """Return the timed images, in order."""
    return [sample for sample in run.iterations if sample.phase == "timed"]


def observer_effect(run: Run) -> stats.Summary | None:
    """Return the time with samplers over that without, from neighbouring pairs; None where there are none."""
    samples = [sample for sample in run.iterations if sample.phase == "observer"]
    pairs = [sorted(pair, key=lambda sample: sample.traced) for pair in zip(samples[::2], samples[1::2], strict=False)]
    whole = [(off, on) for off, on in pairs if on.traced and not off.traced and off.duration_ns > 0]
    if not whole:
        return None
    return stats.paired_ratio([on.duration_ns for _, on in whole], [off.duration_ns for off, _ in whole])


def after_gap(run: Run) -> stats.Ratio | None:
    """Return the time of timed images that followed a pause over that of images back to back.

    Those back to back are the other timed ones and the sampled ones of the observer pairs, which are made in burst
    whatever the protocol is; in a spaced run every timed image follows a pause. None where either kind is missing.
    """
    images = [s for s in run.iterations if s.gap_ns is not None and (s.phase == "timed" or _is_traced_observer(s))]
    long_ns = 0 if run.measurement.kind == "spaced" else LONG_GAP_NS
    rested = [s.duration_ns for s in images if s.phase == "timed" and (s.gap_ns or 0) >= long_ns]
    pressed = [s.duration_ns for s in images if (s.gap_ns or 0) < LONG_GAP_NS and (s.phase != "timed" or long_ns)]
    return stats.ratio_of_medians(rested, pressed) if rested and pressed else None


def canary_ratio(run: Run) -> float | None:
    """Return the canary's median in the last third of the run over its best cool time; None without both."""
    cool = [sample.duration_ns for sample in run.canaries if sample.when == "cool" and sample.duration_ns > 0]
    between = [sample.duration_ns for sample in run.canaries if sample.when == "between"]
    if not cool or not between:
        return None
    return median(last_third(between)) / min(cool)


def trend(run: Run) -> stats.Trend | None:
    """Return how the timed images changed from first to last; None where there are too few to have thirds."""
    durations = [sample.duration_ns for sample in timed(run)]
    return stats.trend(durations) if len(durations) >= stats.LEAST_FOR_INTERVAL else None


def start_seconds(run: Run) -> list[float]:
    """Return when each timed image began, in seconds from the first."""
    images = timed(run)
    return [(sample.start_boot_ns - images[0].start_boot_ns) / NS_PER_S for sample in images]


def slowest_stage(run: Run) -> tuple[str, float] | None:
    """Return the stage whose median grew most from the first third to the last, and by which ratio."""
    images = timed(run)
    first, last = first_third(images), last_third(images)
    ratios = {
        name: _stage_median(last, name) / before for name in _stages(images) if (before := _stage_median(first, name))
    }
    return max(ratios.items(), key=lambda item: item[1], default=None)


def first_third(items: Sequence[T]) -> Sequence[T]:
    """Return the first third, at least one."""
    return items[: max(1, len(items) // 3)]


def last_third(items: Sequence[T]) -> Sequence[T]:
    """Return the last third, at least one."""
    return items[-max(1, len(items) // 3) :]


def _is_traced_observer(sample: IterationSample) -> bool:
    return sample.phase == "observer" and sample.traced


def _stages(images: Sequence[IterationSample]) -> list[str]:
    return list(dict.fromkeys(stage.stage for image in images for stage in image.stages))


def _stage_median(images: Sequence[IterationSample], name: str) -> float:
    sums = [sum(stage.duration_ns for stage in image.stages if stage.stage == name) for image in images]
    return float(median(sums)) if sums else 0.0
