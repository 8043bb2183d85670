"""All figures of a run, in the order a report shows them."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.report.entry import Entry
from profiler.report.figures.canvas import Drawing
from profiler.report.figures.comparison import comparison
from profiler.report.figures.drift import drift
from profiler.report.figures.environment import environment
from profiler.report.figures.environment import missing as missing_gauges
from profiler.report.figures.latency import latency
from profiler.report.figures.limits import limits
from profiler.report.figures.memory import memory
from profiler.report.figures.stages import stages


def of_run(entry: Entry) -> list[Drawing]:
    """Return the figures that a run has samples for."""
    run, summary, traces = entry.run, entry.summary, entry.traces
    drawn = (
        limits(summary),
        latency(run, summary),
        drift(summary),
        stages(run, summary),
        memory(run, summary, traces),
        environment(run, traces),
    )
    return [drawing for drawing in drawn if drawing is not None]


def side_by_side(entries: Sequence[Entry], names: Sequence[str]) -> Drawing | None:
    """Return the figure that compares runs, or nothing for fewer than two with timed images."""
    return comparison([entry.summary for entry in entries], names)


def missing(entry: Entry) -> list[tuple[str, str]]:
    """Return gauges without readings and why, in words."""
    return list(missing_gauges(entry.run, entry.traces).items())
