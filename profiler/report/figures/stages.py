"""Where the time of an image goes: the median of each stage, from zero, with its middle half."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from profiler.effects import timed
from profiler.quantities import format_ns
from profiler.records.run import IterationSample, Run
from profiler.records.summary import Summary
from profiler.report.figures.canvas import NARROW, SMALL_PX, Drawing, axes, paper, short, time_unit, x_title
from profiler.report.palette import light, series

_ROW = 34


def stages(run: Run, summary: Summary) -> Drawing | None:
    """Return the stage breakdown, or nothing where no timed image has stages."""
    medians = summary.stages_ns
    if not medians:
        return None
    n, total = len(timed(run)), sum(medians.values()) or 1
    shares = ", ".join(f"{short(name)} {format_ns(ns)} ({100 * ns / total:.0f} %)" for name, ns in medians.items())
    return Drawing(
        "stages",
        f"Median time of each stage over {n} timed images: {shares}.",
        f"Medians over the timed images (n = {n}), in the order the stages run; the line spans p25 to p75. "
        "Shares are of the sum of the medians.",
        lambda width: _draw(part_colours(run), timed(run), medians, width),
    )


def part_colours(run: Run) -> dict[str, str]:
    """Return a colour for each stage and component, the same in every figure of a run."""
    in_images = [stage.stage for sample in run.iterations for stage in sample.stages]
    return {
        name: series(place) for place, name in enumerate(dict.fromkeys([*in_images, *run.bundle.size_by_component]))
    }


def _draw(colours: dict[str, str], samples: Sequence[IterationSample], medians: dict[str, float], width: int) -> Figure:
    wide, names = width > NARROW, list(medians)
    bottom = 6 + _ROW * len(names)
    figure = paper(width, bottom + 38)
    longest = max(len(short(name, 22 if wide else 13)) for name in names)
    frame = axes(figure, left=16 + 7 * longest, right=118 if wide else 94, top=6, bottom=bottom)
    unit, length = time_unit(max(medians.values()))
    total = sum(medians.values()) or 1
    frame.yaxis.grid(False)
    frame.xaxis.grid(True, color=light("rule"), linewidth=1)
    for row, name in enumerate(names):
        value, (low, high) = medians[name] / length, _quartiles(samples, name, length)
        frame.barh(row, value, height=0.56, color=colours[name], zorder=2)
        if high > low:
            frame.plot([low, high], [row, row], color=light("ink"), linewidth=1.6, solid_capstyle="butt", zorder=3)
        frame.annotate(
            f"{format_ns(medians[name])} · {100 * medians[name] / total:.0f} %",
            xy=(max(value, high), row),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=light("ink"),
            fontsize=SMALL_PX + 0.5,
            annotation_clip=False,
        )
    frame.set_yticks(range(len(names)), [short(name, 22 if wide else 13) for name in names], color=light("ink"))
    frame.set_ylim(len(names) - 0.5, -0.5)
    frame.set_xlim(0, max(max(medians.values()) / length, *(_quartiles(samples, name, length)[1] for name in names)))
    x_title(frame, f"median time of the stage, {unit}")
    return figure


def _quartiles(samples: Sequence[IterationSample], name: str, length: int) -> tuple[float, float]:
    sums = [sum(stage.duration_ns for stage in sample.stages if stage.stage == name) for sample in samples]
    low, high = np.quantile(sums, (0.25, 0.75))
    return float(low) / length, float(high) / length
