"""The result of `benchmarks.runner_overhead`: records, verdicts and table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from benchmarks.verdicts import Load, Verdict, judge_interval
from profiler.records.record import Record
from profiler.stats import Interval, Summary

CALL_LIMIT_US, IMAGE_LIMIT_MS, RATIO_LIMIT = 50.0, 1.0, 1.02
CONTROL_TOLERANCE = 0.01


class Overhead(Record):
    """What one bundle showed.

    `image_ms` is the median over rounds of runner minus hand loop, `image_ms_mean` their mean; `ratio` is runner to
    hand loop, `control` hand loop to hand loop.
    """

    subject: str
    task: str
    parameters: int
    images: int
    calls: int
    hand_ms: float
    image_ms: float
    image_ms_ci95: Interval | None
    image_ms_mean: float
    ratio: Summary
    control: Summary

    @property
    def resolved(self) -> bool:
        """Tell whether the control's whole interval is within 1 % of no difference."""
        if self.control.ci95 is None:
            return False
        low, high = self.control.ci95
        return low >= 1 - CONTROL_TOLERANCE and high <= 1 + CONTROL_TOLERANCE

    @property
    def call_us_ci95(self) -> Interval | None:
        """Return the interval for one call: an image's share."""
        if self.image_ms_ci95 is None:
            return None
        low, high = self.image_ms_ci95
        return 1000 * low / self.calls, 1000 * high / self.calls


class Report(Record):
    """The whole result, as `--json` prints it."""

    benchmark: str = "runner_overhead"
    load_average: Load
    overheads: tuple[Overhead, ...]
    verdicts: tuple[Verdict, ...]


def verdicts_on_small(overhead: Overhead) -> list[Verdict]:
    """Hold the absolute overhead against its limits."""
    name, sure = overhead.subject, overhead.resolved
    return [
        judge_interval(
            f"{name}: overhead a call, upper bound", "µs", overhead.call_us_ci95, CALL_LIMIT_US, resolved=sure
        ),
        judge_interval(
            f"{name}: overhead an image, upper bound", "ms", overhead.image_ms_ci95, IMAGE_LIMIT_MS, resolved=sure
        ),
    ]


def verdicts_on_large(overhead: Overhead) -> list[Verdict]:
    """Hold the ratio against its limit."""
    what = f"{overhead.subject}: runner / hand loop, upper bound"
    return [judge_interval(what, "", overhead.ratio.ci95, RATIO_LIMIT, resolved=overhead.resolved)]


def render(overheads: Sequence[Overhead]) -> Table:
    """Lay the results out, one bundle a column; brackets are 95 % intervals."""
    table = Table("", *(f"{overhead.subject}, {overhead.task}" for overhead in overheads))
    rows = {
        "parameters": [f"{overhead.parameters / 1e6:.1f} M" for overhead in overheads],
        "images a side": [str(overhead.images) for overhead in overheads],
        "calls an image": [str(overhead.calls) for overhead in overheads],
        "hand loop, an image": [f"{overhead.hand_ms:.2f} ms" for overhead in overheads],
        "overhead, an image": [f"{_bracketed(o.image_ms, o.image_ms_ci95, 3)} ms" for o in overheads],
        "… mean": [f"{overhead.image_ms_mean:.3f} ms" for overhead in overheads],
        "overhead, a call": [f"{_bracketed(1000 * o.image_ms / o.calls, o.call_us_ci95, 1)} µs" for o in overheads],
        "runner / hand loop": [_bracketed(o.ratio.median, o.ratio.ci95, 4) for o in overheads],
        "hand loop / hand loop": [_bracketed(o.control.median, o.control.ci95, 4) for o in overheads],
    }
    for title, cells in rows.items():
        table.add_row(title, *cells)
    return table


def _bracketed(value: float, interval: Interval | None, digits: int) -> str:
    if interval is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ({interval[0]:.{digits}f} – {interval[1]:.{digits}f})"
