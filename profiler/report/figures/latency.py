"""Every image's time in the order they were made, the kinds told apart, with the median and its interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from profiler.quantities import format_ns
from profiler.records.run import IterationSample, Run
from profiler.records.summary import LatencySummary, Summary
from profiler.report.figures.canvas import (
    NARROW,
    SMALL_PX,
    Drawing,
    at_right,
    axes,
    legend,
    paper,
    time_unit,
    title,
    x_title,
)
from profiler.report.palette import light

_MOST_DOTS = 1500
_BEYOND = 3.0  # an image of more than so many times the slowest timed one would press the others flat


class _Kind(NamedTuple):
    words: str
    marker: str
    colour: str
    filled: bool


_KINDS = {
    "cold": _Kind("cold", "D", "series-4", True),
    "warmup": _Kind("warm-up", "o", "series-2", False),
    "timed": _Kind("timed", "o", "series-1", True),
    "observer": _Kind("observer, sampled", "s", "series-6", True),
    "untraced": _Kind("observer, not sampled", "s", "series-6", False),
}


def latency(run: Run, summary: Summary) -> Drawing | None:
    """Return the strip plot, or nothing where no image was finished."""
    if not run.iterations:
        return None
    timed = summary.latency_ns
    return Drawing("latency", _alt(run, timed), _caption(run, timed), lambda width: _draw(run, timed, width))


def _alt(run: Run, timed: LatencySummary | None) -> str:
    kinds = {phase: len(list(group)) for phase, group in groupby(sorted(s.phase for s in run.iterations))}
    counts = ", ".join(f"{number} {phase}" for phase, number in kinds.items())
    if timed is None:
        return f"Time of each image in the order made ({counts}); none of them is timed."
    interval = f", 95 % interval {format_ns(timed.ci95[0])} to {format_ns(timed.ci95[1])}" if timed.ci95 else ""
    return (
        f"Latency of {timed.n} timed images in run order: median {format_ns(timed.median)}{interval}, smallest "
        f"{format_ns(min(timed.samples))}, largest {format_ns(max(timed.samples))}. All images by kind: {counts}."
    )


def _caption(run: Run, timed: LatencySummary | None) -> str:
    return " ".join(_remarks(run, timed))


def _remarks(run: Run, timed: LatencySummary | None) -> Iterator[str]:
    thinned = _thinned_by(run.iterations)
    if thinned > 1:
        yield f"Of each {thinned} images the fastest, the middle and the slowest one are drawn."
    else:
        yield "Each mark is one image."
    if timed is not None:
        band = ", the band its 95 % interval" if timed.ci95 else "; too few for an interval"
        yield f"The line is the median of the timed images (n = {timed.n}){band}; the other kinds never count into it."
    if _floor(run.iterations) > 0:
        yield "The axis does not start at zero."


def _draw(run: Run, timed: LatencySummary | None, width: int) -> Figure:
    wide = width > NARROW
    kinds = [kind for kind in _KINDS if any(_kind(sample) == kind for sample in run.iterations)]
    legend_rows = 1 if wide else -(-len(kinds) // 2)
    top = 30 + 18 * legend_rows
    figure = paper(width, top + (230 if wide else 200) + 40)
    frame = axes(figure, left=46, right=92 if wide else 62, top=top, bottom=top + (230 if wide else 200))
    ceiling = _ceiling(run.iterations)
    unit, length = time_unit(ceiling)
    for kind, places, values in _marks(run.iterations):
        _dots(frame, _KINDS[kind], places, [value / length for value in values], ceiling / length, len(run.iterations))
    if timed is not None:
        _median(frame, run.iterations, timed, length, unit)
    _limits(frame, run.iterations, ceiling, length)
    title(frame, f"time of one image, {unit}")
    x_title(frame, "image, in the order made")
    _legend(figure, kinds, wide)
    return figure


def _kind(sample: IterationSample) -> str:
    return "untraced" if sample.phase == "observer" and not sample.traced else sample.phase


def _ceiling(samples: Sequence[IterationSample]) -> float:
    slowest = max(sample.duration_ns for sample in samples)
    timed = max((s.duration_ns for s in samples if s.phase == "timed"), default=slowest)
    return slowest if slowest <= _BEYOND * timed else _BEYOND / 2 * timed


def _floor(samples: Sequence[IterationSample]) -> float:
    """Return where the axis begins: at zero where that costs little room."""
    fastest, ceiling = min(sample.duration_ns for sample in samples), _ceiling(samples)
    return 0 if fastest < 0.5 * ceiling else fastest - (0.08 * (ceiling - fastest) or 0.1 * ceiling)


def _thinned_by(samples: Sequence[IterationSample]) -> int:
    return 1 if len(samples) <= _MOST_DOTS else -(-3 * len(samples) // _MOST_DOTS)


def _marks(samples: Sequence[IterationSample]) -> Iterator[tuple[str, list[int], list[int]]]:
    step = _thinned_by(samples)
    for kind in _KINDS:
        numbered = [(n, s.duration_ns) for n, s in enumerate(samples, 1) if _kind(s) == kind]
        kept = [pair for at in range(0, len(numbered), step) for pair in _extremes(numbered[at : at + step])]
        if kept:
            yield kind, [n for n, _ in kept], [value for _, value in kept]


def _extremes(group: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if len(group) <= 3:
        return group
    ranked = sorted(group, key=lambda pair: pair[1])
    return sorted({ranked[0], ranked[len(ranked) // 2], ranked[-1]})


def _dots(frame: Axes, kind: _Kind, places: list[int], values: list[float], ceiling: float, number: int) -> None:
    colour = light(kind.colour)
    size = 6.5 if number <= 120 else 4.5 if number <= 400 else 3.0
    inside = [(place, value) for place, value in zip(places, values, strict=True) if value <= ceiling]
    frame.plot(
        *zip(*inside, strict=True) if inside else ((), ()),
        **_mark(kind, size),
        color=colour,
        linestyle="none",
        zorder=3,
    )
    for place, value in zip(places, values, strict=True):
        if value > ceiling:
            frame.plot([place], [ceiling * 1.06], marker="^", markersize=7, color=colour, clip_on=False, zorder=4)


def _mark(kind: _Kind, size: float) -> dict[str, Any]:
    return {
        "marker": kind.marker,
        "markersize": size * (0.85 if kind.marker != "o" else 1),
        "markerfacecolor": light(kind.colour) if kind.filled else light("card"),
        "markeredgecolor": light(kind.colour),
        "markeredgewidth": 1.3,
    }


def _median(frame: Axes, samples: Sequence[IterationSample], timed: LatencySummary, length: int, unit: str) -> None:
    places = [number for number, sample in enumerate(samples, 1) if sample.phase == "timed"]
    start, end, colour = places[0] - 0.5, places[-1] + 0.5, light("series-1")
    if timed.ci95 is not None:
        low, high = (value / length for value in timed.ci95)
        frame.fill_between([start, end], low, high, color=colour, alpha=0.16, linewidth=0, zorder=1)
    median = timed.median / length
    frame.plot([start, end], [median, median], color=colour, linewidth=1.8, zorder=2)
    frame.plot([end, len(samples) + 0.5], [median, median], color=colour, linewidth=1, linestyle=(0, (1, 2)), zorder=2)
    at_right(frame, f"median\n{format_ns(timed.median)}", median, gap=6, linespacing=1.25)


def _limits(frame: Axes, samples: Sequence[IterationSample], ceiling: float, length: int) -> None:
    floor = _floor(samples)
    frame.set_ylim(floor / length, (ceiling + 0.08 * (ceiling - floor)) / length)
    frame.set_xlim(0.5, len(samples) + 0.5)
    frame.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
    beyond = [sample.duration_ns for sample in samples if sample.duration_ns > ceiling]
    if beyond:
        frame.annotate(
            f"▲ {len(beyond)} beyond, up to {format_ns(max(beyond))}",
            xy=(1, 1),
            xycoords="axes fraction",
            xytext=(0, 9),
            textcoords="offset points",
            ha="right",
            color=light("muted"),
            fontsize=SMALL_PX,
            annotation_clip=False,
        )


def _legend(figure: Figure, kinds: Sequence[str], wide: bool) -> None:
    handles = [Line2D([], [], linestyle="none", **_mark(_KINDS[kind], 6.5)) for kind in kinds]
    names = [_KINDS[kind].words for kind in kinds]
    legend(figure, handles, names, len(kinds) if wide else 2, handletextpad=0.3)
