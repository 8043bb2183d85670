"""Runs as a list: what a line says, without the intervals, trends and effects that take most of a summary's time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any, NamedTuple

from profiler import tiers
from profiler.effects import timed
from profiler.records.policy import Policy
from profiler.records.run import Run
from profiler.records.summary import LatencySummary
from profiler.report.summary import measured, peak_memory_bytes
from profiler.validity import clock_fault

TIERS = ("D4", "D3", "D2", "D1", "none", "unknown")


class Line(NamedTuple):
    """One run in a list; missing is null."""

    run: Run
    n: int
    latency_ns: float | None
    peak_memory_bytes: int | None
    tier: str


def line(run: Run, policy: Policy) -> Line:
    """Return what a list says of a run; its tier is the one that a full summary finds, which looks at medians alone."""
    samples = tuple(sample.duration_ns for sample in timed(run))
    latency = _without_interval(samples) if samples and not clock_fault(run) else None
    verdict = tiers.judge(policy, measured(run, latency))
    return Line(run, len(samples), latency.median if latency else None, peak_memory_bytes(run), verdict.tier)


def _without_interval(samples: tuple[int, ...]) -> LatencySummary:
    return LatencySummary(
        median=float(median(samples)),
        p25=None,
        p75=None,
        p90=None,
        ci95=None,
        ci_method="none: not asked for",
        ci_reachable_coverage=0.0,
        quantile_method="none: not asked for",
        n=len(samples),
        samples=samples,
    )


class Filter(NamedTuple):
    """Which runs are wanted; an empty choice wants all. Times are wall clock ns, `until_ns` is outside."""

    devices: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None

    def takes(self, found: Line) -> bool:
        """Tell whether a run is wanted."""
        run = found.run
        return (
            _among(run.unit.profile, self.devices)
            and _among(run.model, self.models)
            and _among(run.task, self.tasks)
            and _among(run.outcome, self.outcomes)
            and _among(found.tier, self.tiers)
            and _among(run.measurement.kind, self.protocols)
            and (self.since_ns is None or run.started_wall_ns >= self.since_ns)
            and (self.until_ns is None or run.started_wall_ns < self.until_ns)
        )


def _among(value: str, wanted: tuple[str, ...]) -> bool:
    return not wanted or value in wanted


ORDERS: dict[str, Callable[[Line], Any]] = {
    "time": lambda found: found.run.run_id,
    "latency": lambda found: found.latency_ns,
    "memory": lambda found: found.peak_memory_bytes,
    "size": lambda found: found.run.bundle.size_bytes,
    "model": lambda found: found.run.model,
    "tier": lambda found: None if found.tier == "unknown" else TIERS.index(found.tier),
}


def ordered(lines: Iterable[Line], by: str, *, reverse: bool) -> list[Line]:
    """Sort lines; what is missing stands last either way, and equals keep the order they came in."""
    key = ORDERS[by]
    kept = list(lines)
    known = [found for found in kept if key(found) is not None]
    missing = [found for found in kept if key(found) is None]
    return [*sorted(known, key=key, reverse=reverse), *missing]
