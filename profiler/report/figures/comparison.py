"""Several runs' timed images on one scale: every image, the median and its interval, one row a run."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from profiler.quantities import format_ns
from profiler.records.summary import LatencySummary, Summary
from profiler.report.figures.canvas import NARROW, SMALL_PX, Drawing, at_right, axes, paper, short, time_unit, x_title
from profiler.report.palette import light

_MOST_TICKS = 200


def comparison(summaries: Sequence[Summary], labels: Sequence[str]) -> Drawing | None:
    """Return the latencies side by side, or nothing where fewer than two runs have timed images."""
    rows = [(label, s.latency_ns) for label, s in zip(labels, summaries, strict=True) if s.latency_ns is not None]
    if len(rows) < 2:
        return None
    said = "; ".join(
        f"{short(label, 40)}: median {format_ns(row.median)}{_interval(row)}, n = {row.n}" for label, row in rows
    )
    return Drawing(
        "comparison",
        f"Latency of {len(rows)} runs on one scale. {said}.",
        "A tick is one timed image, the dot their median, the bar its 95 % interval. Runs without a timed image are "
        "left out. Runs on other devices, protocols or settings are not like for like: the table marks "
        "where they differ.",
        lambda width: _draw(rows, width),
    )


def _interval(row: LatencySummary) -> str:
    return f" ({format_ns(row.ci95[0])} to {format_ns(row.ci95[1])})" if row.ci95 else " (no interval)"


def _draw(rows: Sequence[tuple[str, LatencySummary]], width: int) -> Figure:
    wide = width > NARROW
    row_height = 30 if wide else 44
    bottom = 8 + row_height * len(rows)
    figure = paper(width, bottom + 38)
    longest = max(len(short(label, 34)) for label, _ in rows)
    frame = axes(figure, left=18 + 6.6 * longest if wide else 8, right=86 if wide else 70, top=8, bottom=bottom)
    highest = max(max(row.samples) for _, row in rows)
    unit, length = time_unit(highest)
    frame.yaxis.grid(False)
    frame.xaxis.grid(True, color=light("rule"), linewidth=1)
    for place, (label, row) in enumerate(rows):
        _row(frame, place, row, length)
        _label(frame, place, short(label, 34 if wide else 44), wide)
    frame.set_yticks([])
    frame.set_ylim(len(rows) - 0.5, -0.5)
    frame.set_xlim(0, 1.03 * highest / length)
    x_title(frame, f"time of one image, {unit}")
    return figure


def _row(frame: Axes, place: int, row: LatencySummary, length: int) -> None:
    step = -(-len(row.samples) // _MOST_TICKS)
    xs = [value / length for value in sorted(row.samples)[::step]]
    colour, median = light("series-1"), row.median / length
    frame.plot(
        xs,
        [place + 0.12] * len(xs),
        linestyle="none",
        marker="|",
        markersize=8,
        markeredgewidth=1,
        color=colour,
        alpha=0.55,
    )
    if row.ci95 is not None:
        frame.plot(
            [value / length for value in row.ci95],
            [place + 0.12] * 2,
            color=light("ink"),
            linewidth=3,
            solid_capstyle="butt",
            zorder=3,
        )
    frame.plot(
        [median],
        [place + 0.12],
        marker="o",
        markersize=7.5,
        color=light("ink"),
        markeredgecolor=light("card"),
        zorder=4,
    )
    at_right(frame, format_ns(row.median), place + 0.12, gap=8)


def _label(frame: Axes, place: int, label: str, wide: bool) -> None:
    at, shift = ((0, place + 0.12), (-12, 0)) if wide else ((0, place - 0.28), (0, 0))
    frame.annotate(
        label,
        xy=at,
        xycoords=("axes fraction", "data"),
        xytext=shift,
        textcoords="offset points",
        ha="right" if wide else "left",
        va="center",
        color=light("ink"),
        fontsize=SMALL_PX,
        annotation_clip=False,
    )
