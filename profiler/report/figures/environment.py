"""Temperature, battery, clock, load and canary over a run: one panel a gauge that gave readings, one time axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from profiler.quantities import NS_PER_S
from profiler.records.run import Run
from profiler.records.trace import ProcessTrace
from profiler.report.figures.canvas import NARROW, SMALL_PX, Drawing, axes, paper, thinned, title, x_title
from profiler.report.palette import light
from profiler.report.readings import Reading, scaled

_PANEL = 92
_GAP = 44
_GAUGES = {
    "temperature_millicelsius": "temperature",
    "battery_percent": "battery",
    "external_power": "external power",
    "cpu_frequency_khz": "processor clock",
    "cpu_frequency_limit_khz": "clock limit",
    "cpu_load_percent": "processor load",
    "own_cpu_percent": "use by this runner",
    "other_cpu_percent": "use by everything else",
    "throttle_count": "count of slow-downs by heat",
    "battery_temperature_millicelsius": "battery temperature",
    "battery_current_raw": "battery current",
    "battery_voltage_millivolts": "battery voltage",
    "battery_charge_counter_microamperehours": "charge counter",
    "thermal_headroom": "thermal headroom",
    "thermal_status": "thermal status",
    "energy_microwattseconds_by_rail": "power rails",
}
Points = list[tuple[int, float]]


class _Line(NamedTuple):
    words: str
    points: Points
    colour: str
    dashed: bool


class _Panel(NamedTuple):
    title: str
    unit: str
    lines: list[_Line]
    from_zero: bool
    least: float = 0  # a range shown at least, so that the noise of a steady gauge does not look like a change


def environment(run: Run, traces: Sequence[ProcessTrace]) -> Drawing | None:
    """Return the traces of the slow gauges, or nothing where none gave a reading."""
    panels = list(_panels(run, traces))
    if not panels:
        return None
    return Drawing("environment", _alt(panels), _caption(run, traces), lambda width: _draw(run, traces, panels, width))


def missing(run: Run, traces: Sequence[ProcessTrace]) -> dict[str, str]:
    """Return why gauges without readings have none, gauges of one reason together."""
    reasons = {gauge: reason for trace in traces for gauge, reason in trace.missing.items()}
    if run.conditions.power.reason:
        reasons.setdefault("battery_percent", run.conditions.power.reason)
    if run.max_temperature_millicelsius is None and run.temperature_reason:
        reasons.setdefault("temperature_millicelsius", run.temperature_reason)
    gauges: dict[str, list[str]] = {}
    for gauge, reason in sorted(reasons.items()):
        if _has_reading(gauge, traces):
            continue  # missing at first, as some gauges are
        gauges.setdefault(reason, []).append(_GAUGES.get(gauge, gauge.replace("_", " ")))
    return {", ".join(names): reason for reason, names in gauges.items()}


def _has_reading(gauge: str, traces: Sequence[ProcessTrace]) -> bool:
    return any(getattr(sample, gauge, None) is not None for trace in traces for sample in trace.environment)


def _panels(run: Run, traces: Sequence[ProcessTrace]) -> Iterator[_Panel]:
    samples = [sample for trace in traces for sample in trace.environment]

    def line(words: str, colour: str, read: Reading, dashed: bool = False) -> _Line:
        points = [(s.device_boot_ns, value) for s in samples if (value := read(s)) is not None]
        return _Line(words, points, light(colour), dashed)

    candidates = [
        _Panel(
            "temperature",
            "°C",
            [
                line("processor", "series-2", scaled("temperature_millicelsius", 1000)),
                line("battery", "series-3", scaled("battery_temperature_millicelsius", 1000), True),
            ],
            False,
            4,
        ),
        _Panel("thermal headroom", "1 is severe", [line("", "series-6", scaled("thermal_headroom", 1))], True),
        _Panel("battery", "%", [line("", "series-3", scaled("battery_percent", 1))], False, 4),
        _Panel(
            "processor clock",
            "GHz",
            [
                line("clock", "series-1", scaled("cpu_frequency_khz", 10**6)),
                line("limit", "series-6", scaled("cpu_frequency_limit_khz", 10**6), True),
            ],
            True,
        ),
        _Panel(
            "processor use",
            "% of a core",
            [
                line("runner", "series-1", scaled("own_cpu_percent", 1)),
                line("others", "series-2", scaled("other_cpu_percent", 1), True),
            ],
            True,
        ),
        _Panel(
            "canary workload",
            "times as long as cool",
            [_Line("", _canaries(run), light("series-4"), False)],
            False,
            0.2,
        ),
    ]
    for panel in candidates:
        lines = [line for line in panel.lines if line.points]
        if lines:
            yield panel._replace(lines=lines)


def _canaries(run: Run) -> Points:
    cool = [canary.duration_ns for canary in run.canaries if canary.when == "cool"]
    if not cool:
        return []
    return [(canary.device_boot_ns, canary.duration_ns / median(cool)) for canary in run.canaries]


def _alt(panels: Sequence[_Panel]) -> str:
    return " ".join(_said(panel, line) for panel in panels for line in panel.lines)


def _said(panel: _Panel, line: _Line) -> str:
    values = [value for _, value in line.points]
    of = f", {line.words}" if line.words and len(panel.lines) > 1 else ""
    return (
        f"{panel.title.capitalize()}{of}: n = {len(values)}, {values[0]:.4g} at the start, {min(values):.4g} to "
        f"{max(values):.4g} {panel.unit}."
    )


def _caption(run: Run, traces: Sequence[ProcessTrace]) -> str:
    every = run.sampling.environment_interval_ms / 1000
    canaries = (
        " The canary is a small fixed workload of the runner: it takes longer when the processor is slowed down."
        if run.canaries
        else ""
    )
    return f"Read every {every:g} s by each runner process; the shaded part is where timed images were made.{canaries}"


def _draw(run: Run, traces: Sequence[ProcessTrace], panels: Sequence[_Panel], width: int) -> Figure:
    wide = width > NARROW
    columns = 2 if wide and len(panels) > 1 else 1
    rows = -(-len(panels) // columns)
    figure = paper(width, 26 + rows * (_PANEL + _GAP) + 4)
    moments = [moment for panel in panels for line in panel.lines for moment, _ in line.points]
    starts = [trace.spans[0].start_boot_ns for trace in traces if trace.spans]
    origin = min([*moments, *starts])
    timed = [(s.start_boot_ns, s.start_boot_ns + s.duration_ns) for s in run.iterations if s.phase == "timed"]
    end = max([*moments, *(last for _, last in timed)])
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        top = 24 + row * (_PANEL + _GAP)
        left = 46 + column * (width + 14) / 2
        right = 14 if columns == 1 or column else width / 2 + 16
        frame = axes(figure, left=left, right=right, top=top, bottom=top + _PANEL)
        _panel(frame, panel, origin, end)
        if timed:
            frame.axvspan(
                (timed[0][0] - origin) / NS_PER_S,
                (timed[-1][1] - origin) / NS_PER_S,
                color=light("series-6"),
                alpha=0.13,
                linewidth=0,
                zorder=0,
            )
        if row == rows - 1 or number + columns >= len(panels):
            x_title(frame, "s since the first load began")
    return figure


def _panel(frame: Axes, panel: _Panel, origin: int, end: int) -> None:
    for line in panel.lines:
        xs, ys = thinned([(moment - origin) / NS_PER_S for moment, _ in line.points], [v for _, v in line.points])
        style = (0, (4, 2)) if line.dashed else "-"
        marker = ("s" if line.dashed else "o") if len(xs) <= 60 else None
        frame.plot(
            xs,
            ys,
            color=line.colour,
            linewidth=1.6,
            linestyle=style,
            marker=marker,
            markersize=4,
            zorder=3,
            clip_on=False,
            label=line.words,
        )
    values = [value for line in panel.lines for _, value in line.points]
    low, high = min(values), max(values)
    middle, half = (low + high) / 2, max(0.65 * (high - low), panel.least / 2)
    frame.set_ylim(0 if panel.from_zero else middle - half, (1.15 * high or 1) if panel.from_zero else middle + half)
    frame.set_xlim(0, max((end - origin) / NS_PER_S, 0.001))
    frame.yaxis.set_major_locator(MaxNLocator(4))
    title(frame, f"{panel.title}, {panel.unit}")
    if len(panel.lines) > 1:
        _legend(frame)


def _legend(frame: Axes) -> None:
    """Name the lines at the right of the title's row, where no reading can run into their names."""
    frame.legend(
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0.25,
        ncols=2,
        frameon=False,
        fontsize=SMALL_PX,
        labelcolor=light("ink"),
        handlelength=1.6,
        handletextpad=0.5,
        columnspacing=1.2,
        borderpad=0,
    )
