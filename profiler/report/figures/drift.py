"""How latency changed while images were made: medians of slices of the run with their middle halves."""

from __future__ import annotations

from matplotlib.figure import Figure

from profiler.quantities import format_ns
from profiler.records.summary import DriftSummary, Summary
from profiler.report.figures.canvas import NARROW, SMALL_PX, Drawing, axes, paper, time_unit, title, x_title
from profiler.report.palette import light


def drift(summary: Summary) -> Drawing | None:
    """Return the curve of a sustained run, or nothing where a run has none."""
    found = summary.drift
    if found is None or len(found.curve) < 2 or not summary.protocol.startswith("sustained"):
        return None
    return Drawing("drift", _alt(found), _caption(found), lambda width: _draw(found, width))


def _alt(found: DriftSummary) -> str:
    first, last = found.curve[0], found.curve[-1]
    onset = "No point of change was found." if found.onset_s is None else f"It changes most at {found.onset_s:.0f} s."
    return (
        f"Median latency over {last.end_s:.0f} s in {len(found.curve)} slices: {format_ns(first.median_ns)} in the "
        f"first, {format_ns(last.median_ns)} in the last; last third over first third {found.ratio:.3f}. {onset}"
    )


def _caption(found: DriftSummary) -> str:
    n = sorted(point.n for point in found.curve)
    return (
        f"Each step is the median of the images that began in it (n = {n[0]} to {n[-1]}), the band spans p25 to p75. "
        f"From the first third of the run to the last one the median changes by {100 * (found.ratio - 1):+.1f} % "
        f"(trend test: p = {found.p_value:.2g})."
    )


def _draw(found: DriftSummary, width: int) -> Figure:
    wide = width > NARROW
    figure = paper(width, 26 + (190 if wide else 160) + 40)
    frame = axes(figure, left=46, right=16, top=26, bottom=26 + (190 if wide else 160))
    highest = max(point.p75_ns or point.median_ns for point in found.curve)
    unit, length = time_unit(highest)
    for point in found.curve:
        xs = [point.start_s, point.end_s]
        if point.p25_ns is not None and point.p75_ns is not None:
            frame.fill_between(
                xs, point.p25_ns / length, point.p75_ns / length, color=light("series-1"), alpha=0.2, linewidth=0
            )
        frame.plot(xs, [point.median_ns / length] * 2, color=light("series-1"), linewidth=2.4, solid_capstyle="butt")
    frame.set_xlim(0, found.curve[-1].end_s)
    frame.set_ylim(0, 1.12 * highest / length)
    if found.onset_s is not None:
        frame.axvline(found.onset_s, color=light("ink"), linewidth=1.2, linestyle=(0, (3, 3)))
        late = found.onset_s > found.curve[-1].end_s / 2
        frame.annotate(
            f"changes most at {found.onset_s:.0f} s",
            xy=(found.onset_s, 0),
            xycoords=("data", "axes fraction"),
            xytext=(-5 if late else 5, 6),
            textcoords="offset points",
            ha="right" if late else "left",
            color=light("ink"),
            fontsize=SMALL_PX,
        )
    title(frame, f"median time of one image, {unit}")
    x_title(frame, "s since the first timed image")
    return figure
