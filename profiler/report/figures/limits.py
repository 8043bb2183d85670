"""Where a run stands between the limits of the tiers: one line a metric, on a scale of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from profiler.records.policy import Margin, Metric
from profiler.records.summary import Summary
from profiler.report.figures.canvas import NARROW, SMALL_PX, Drawing, axes, paper
from profiler.report.palette import light
from profiler.report.terminal import METRIC_WORDS, quantity

_ROW = 54
_SIGN_PX = 5.6  # of a label, about


def limits(summary: Summary) -> Drawing | None:
    """Return the limits figure, or nothing where the policy limits nothing."""
    rows = {metric: [m for m in summary.tier.margins if m.metric == metric] for metric in METRIC_WORDS}
    rows = {metric: margins for metric, margins in rows.items() if margins}
    if not rows:
        return None
    lack = "not measured" if summary.outcome in ("completed", "failed") else f"not judged: {summary.outcome}"
    said = "; ".join(_said(metric, margins, lack) for metric, margins in rows.items())
    return Drawing(
        "limits",
        f"Each metric against the limits of policy {summary.tier.policy}. {said}.",
        f"The dot is the value, the lines are the upper limits of the tiers in policy {summary.tier.policy}; each "
        "scale is linear and starts at zero. A value left of a line meets that tier's limit.",
        lambda width: _draw(rows, lack, width),
    )


def _said(metric: Metric, margins: Sequence[Margin], lack: str) -> str:
    value = lack if margins[0].value is None else quantity(metric, margins[0].value)
    bounds = ", ".join(f"{m.tier} {quantity(metric, m.limit)}" for m in margins)
    return f"{METRIC_WORDS[metric]} {value}, limits {bounds}"


def _draw(rows: dict[Metric, list[Margin]], lack: str, width: int) -> Figure:
    wide = width > NARROW
    row_height = _ROW if wide else _ROW + 18
    figure = paper(width, 6 + row_height * len(rows))
    for number, (metric, margins) in enumerate(rows.items()):
        top = number * row_height + (24 if wide else 42)
        left, right = (112 if wide else 8), 24
        frame = axes(figure, left=left, right=right, top=top, bottom=top + 12)
        _row(frame, metric, margins, width - left - right)
        value = margins[0].value
        words = lack if value is None else quantity(metric, value)
        _name(figure, METRIC_WORDS[metric], words, top, wide)
    return figure


def _name(figure: Figure, metric: str, value: str, top: int, wide: bool) -> None:
    height = figure.bbox.height
    if not wide:
        figure.text(
            0, 1 - (top - 32) / height, f"{metric}, {value}", va="center", color=light("ink"), fontweight="bold"
        )
        return
    figure.text(0, 1 - (top - 2) / height, metric, va="center", color=light("muted"), fontsize=SMALL_PX)
    figure.text(0, 1 - (top + 13) / height, value, va="center", color=light("ink"), fontweight="bold")


def _row(frame: Axes, metric: Metric, margins: Sequence[Margin], pixels: float) -> None:
    value = margins[0].value
    ends = sorted({m.limit for m in margins})
    top = 1.12 * max([*ends, *([value] if value is not None else [])])
    frame.set_xlim(0, top)
    frame.set_ylim(0, 1)
    frame.set_yticks([])
    frame.set_xticks([])
    frame.spines["bottom"].set_visible(False)
    frame.axvspan(0, top, color=light("rule"), linewidth=0, zorder=0, alpha=0.7)
    if value is not None:
        frame.axvspan(0, value, color=light("series-1"), linewidth=0, zorder=1, alpha=0.35)
        frame.plot(
            [value],
            [0.5],
            "o",
            markersize=12,
            color=light("series-1"),
            markeredgecolor=light("card"),
            markeredgewidth=2,
            zorder=4,
            clip_on=False,
        )
    for margin in margins:
        frame.plot([margin.limit] * 2, [-0.35, 1.35], color=light("ink"), linewidth=1.6, zorder=3, clip_on=False)
    for limit, words in _labels(metric, margins, pixels / top):
        frame.annotate(
            words,
            xy=(limit, 1.35),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            color=light("muted"),
            fontsize=SMALL_PX,
            annotation_clip=False,
        )


def _labels(metric: Metric, margins: Sequence[Margin], pixels_per_unit: float) -> Iterator[tuple[int, str]]:
    """Yield what stands over each limit, from the right: the tier alone where room is short, nothing where none is."""
    edge = float("inf")
    for margin in sorted(margins, key=lambda margin: margin.limit, reverse=True):
        for words in (f"{margin.tier} ≤ {quantity(metric, margin.limit)}", margin.tier):
            half = _SIGN_PX * len(words) / 2
            if margin.limit * pixels_per_unit + half <= edge:
                yield margin.limit, words
                edge = margin.limit * pixels_per_unit - half - _SIGN_PX
                break
