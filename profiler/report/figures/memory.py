"""Resident memory over time with what was going on shaded: one fresh process close up, and the one that was timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from profiler.quantities import NS_PER_MS, format_bytes
from profiler.records.run import Run
from profiler.records.summary import Summary
from profiler.records.trace import ProcessTrace, Span
from profiler.report.figures.canvas import (
    NARROW,
    SMALL_PX,
    Drawing,
    axes,
    legend,
    paper,
    short,
    size_unit,
    thinned,
    time_unit,
    x_title,
)
from profiler.report.figures.canvas import title as axis_title
from profiler.report.figures.stages import part_colours
from profiler.report.palette import light

_PHASES = {"load": "load", "cold": "cold", "warmup": "warm-up", "timed": "timed", "observer": "observer"}
_FIRST = ("load", "cold")
_HEIGHT = 200


class _Band(NamedTuple):
    start_ns: int
    end_ns: int
    words: str
    colour: str


class _Panel(NamedTuple):
    title: str
    close: bool
    trace: ProcessTrace
    bands: list[_Band]
    start_ns: int
    end_ns: int


def memory(run: Run, summary: Summary, traces: Sequence[ProcessTrace]) -> Drawing | None:
    """Return the memory trace, or nothing where memory was not sampled."""
    sampled = [trace for trace in traces if len(trace.memory) > 1 and trace.spans]
    if not sampled:
        return None
    last = sampled[-1]
    panels = [_first_image(run, last)]
    if any(span.phase not in _FIRST for span in last.spans):
        panels.append(_whole(last))
    return Drawing(
        "memory",
        _alt(run, summary, sampled),
        _caption(run, summary, last),
        lambda width: _draw(run, summary, panels, width),
    )


def _alt(run: Run, summary: Summary, sampled: Sequence[ProcessTrace]) -> str:
    last = sampled[-1]
    largest = max(sample.resident_bytes for sample in last.memory)
    loads = ", ".join(f"{short(component)} {format_bytes(reached)}" for component, reached in _reached(last))
    peak = (
        f"the lifetime peak is {format_bytes(summary.peak_memory_bytes)}"
        if summary.peak_memory_bytes
        else "no peak is known"
    )
    return (
        f"Resident memory of process {last.process} over time, {len(last.memory)} samples, from "
        f"{format_bytes(last.memory[0].resident_bytes)} to at most {format_bytes(largest)}; {peak}. "
        f"Largest sample in each load and stage of the first image: {loads}."
    )


def _reached(trace: ProcessTrace) -> Iterator[tuple[str, int]]:
    for span in trace.spans:
        inside = [
            sample.resident_bytes
            for sample in trace.memory
            if span.phase in _FIRST and span.start_boot_ns <= sample.device_boot_ns < (span.end_boot_ns or 2**63)
        ]
        if inside:
            yield f"{'load ' if span.phase == 'load' else ''}{span.component or span.stage}", max(inside)


def _caption(run: Run, summary: Summary, trace: ProcessTrace) -> str:
    every = f"every {run.sampling.memory_interval_ms} ms"
    definition = f" ({summary.memory_definition})" if summary.memory_definition else ""
    return (
        f"Process {trace.process}, sampled {every} while traced images are made (n = {len(trace.memory)}); each sample "
        f"is a lower bound. The upper line is the lifetime peak{definition}, the largest of all processes; the lower "
        "one is the runner before it touched the model."
    )


def _first_image(run: Run, trace: ProcessTrace) -> _Panel:
    spans = [span for span in trace.spans if span.phase in _FIRST]
    colours = part_colours(run)
    bands = [
        _Band(span.start_boot_ns, _end(span, trace), _part(span), colours.get(_part(span), light("series-6")))
        for span in spans
    ]
    start, end = _bounds(bands, trace)
    return _Panel("load and first image", True, trace, bands, start, end)


def _part(span: Span) -> str:
    return span.component or span.stage


def _whole(trace: ProcessTrace) -> _Panel:
    bands = []
    for number, (phase, group) in enumerate(groupby(trace.spans, key=lambda span: span.phase)):
        spans = list(group)
        colour = light("series-6") if number % 2 else light("card")
        bands.append(_Band(spans[0].start_boot_ns, _end(spans[-1], trace), _PHASES.get(phase, phase), colour))
    start, end = _bounds(bands, trace)
    return _Panel("the whole process", False, trace, bands, start, max(end, trace.memory[-1].device_boot_ns))


def _end(span: Span, trace: ProcessTrace) -> int:
    """Return when a span ended; one that the process died in goes on to the last thing known."""
    if span.end_boot_ns is not None:
        return span.end_boot_ns
    return max([span.start_boot_ns + NS_PER_MS, *(sample.device_boot_ns for sample in trace.memory[-1:])])


def _bounds(bands: Sequence[_Band], trace: ProcessTrace) -> tuple[int, int]:
    if not bands:
        return trace.memory[0].device_boot_ns, trace.memory[-1].device_boot_ns
    return min(trace.memory[0].device_boot_ns, bands[0].start_ns), bands[-1].end_ns


def _draw(run: Run, summary: Summary, panels: Sequence[_Panel], width: int) -> Figure:
    wide = width > NARROW
    names = {band.words: band.colour for band in panels[0].bands}
    columns = len(names) if wide else 2
    head = 18 * -(-len(names) // columns)
    per_row = len(panels) if wide else 1
    rows = -(-len(panels) // per_row)
    figure = paper(width, head + rows * (_HEIGHT + 78))
    ceiling = _ceiling(summary, panels)
    for number, panel in enumerate(panels):
        row, column = divmod(number, per_row)
        left = 46 + column * width * 0.47
        right = 14 if per_row == 1 or column else width * 0.55
        top = head + 32 + row * (_HEIGHT + 78)
        frame = axes(figure, left=left, right=right, top=top, bottom=top + _HEIGHT)
        _panel(frame, run, summary, panel, ceiling, (width - left - right))
    handles = [Patch(facecolor=colour, alpha=0.35, edgecolor=colour, linewidth=1.2) for colour in names.values()]
    words = [short(name) for name in names]
    legend(figure, handles, words, columns, handlelength=1.1, handleheight=0.9, handletextpad=0.5)
    return figure


def _ceiling(summary: Summary, panels: Sequence[_Panel]) -> int:
    sampled = max(sample.resident_bytes for panel in panels for sample in panel.trace.memory)
    return max(sampled, summary.peak_memory_bytes or 0)


def _panel(frame: Axes, run: Run, summary: Summary, panel: _Panel, ceiling: int, pixels: float) -> None:
    unit, length = size_unit(ceiling)
    span_ns = max(panel.end_ns - panel.start_ns, 1)
    time, tick = time_unit(span_ns)
    frame.set_xlim(0, span_ns / tick)
    frame.set_ylim(0, 1.2 * ceiling / length)
    _shade(frame, panel, tick, pixels / span_ns)
    for piece_xs, piece_ys in _pieces(panel, run.sampling.memory_interval_ms * NS_PER_MS):
        xs, ys = thinned(piece_xs, piece_ys)
        frame.plot([x / tick for x in xs], [y / length for y in ys], color=light("ink"), linewidth=1.6, zorder=4)
    _level(frame, summary.peak_memory_bytes, length, "peak")
    _level(frame, summary.idle_memory_bytes, length, "idle runner")
    axis_title(frame, f"{unit}, {panel.title}")
    x_title(frame, f"time since its start, {time}")


def _shade(frame: Axes, panel: _Panel, tick: int, pixels_per_ns: float) -> None:
    """Shade what was going on; the close view is told apart by colour, the whole one by light and dark in turn."""
    close = panel.close
    for band in panel.bands:
        start, end = ((moment - panel.start_ns) / tick for moment in (band.start_ns, band.end_ns))
        frame.axvspan(start, end, color=band.colour, alpha=0.3 if close else 0.14, linewidth=0, zorder=0)
        if not close:
            _say(frame, band.words, start, end, tick * pixels_per_ns)
    if close:
        _halves(frame, panel, tick, pixels_per_ns)


def _halves(frame: Axes, panel: _Panel, tick: int, pixels_per_ns: float) -> None:
    """Tell loading from the first image."""
    cold = [span.start_boot_ns for span in panel.trace.spans if span.phase == "cold"]
    border_ns = cold[0] if cold else panel.end_ns
    border, end = ((moment - panel.start_ns) / tick for moment in (border_ns, panel.end_ns))
    _say(frame, "load", 0, border, tick * pixels_per_ns)
    if cold:
        frame.axvline(border, color=light("ink"), linewidth=1, linestyle=(0, (3, 3)), zorder=3)
        _say(frame, "first image", border, end, tick * pixels_per_ns)


def _say(frame: Axes, words: str, start: float, end: float, pixels: float) -> None:
    """Write words at the top of a stretch that has room for them."""
    if (end - start) * pixels > 6.5 * len(words):
        frame.annotate(
            words,
            xy=((start + end) / 2, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, -12),
            textcoords="offset points",
            ha="center",
            color=light("muted"),
            fontsize=SMALL_PX,
            zorder=5,
        )


def _pieces(panel: _Panel, interval_ns: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the line in pieces: where sampling paused, nothing is known, and nothing is drawn."""
    xs: list[int] = []
    ys: list[int] = []
    for sample in panel.trace.memory:
        if not panel.start_ns <= sample.device_boot_ns <= panel.end_ns:
            continue
        if xs and sample.device_boot_ns - panel.start_ns - xs[-1] > 3 * interval_ns:
            yield xs, ys
            xs, ys = [], []
        xs.append(sample.device_boot_ns - panel.start_ns)
        ys.append(sample.resident_bytes)
    if xs:
        yield xs, ys


def _level(frame: Axes, size_bytes: int | None, length: int, words: str) -> None:
    if size_bytes is None:
        return
    value = size_bytes / length
    frame.axhline(value, color=light("muted"), linewidth=1.1, linestyle=(0, (5, 3)), zorder=2)
    frame.annotate(
        f"{words} {format_bytes(size_bytes)}",
        xy=(1, value),
        xycoords=("axes fraction", "data"),
        xytext=(-3, 3),
        textcoords="offset points",
        ha="right",
        color=light("ink"),
        fontsize=SMALL_PX,
        zorder=6,
    )
