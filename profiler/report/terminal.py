"""A summary as people read it in a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from profiler.quantities import NS_PER_S, format_bytes, format_ns
from profiler.records.policy import Margin, Metric
from profiler.records.recipe import Recipe
from profiler.records.run import Energy
from profiler.records.summary import LatencySummary, Summary

_PROVENANCE = {"stated": "stated by its source", "inferred": "inferred from it", "chosen": "chosen here"}
METRIC_WORDS: dict[Metric, str] = {"latency": "latency", "peak_memory": "peak memory", "size": "size"}


NO_IMAGE = "no image: the graph's output is a tensor"


def render(summary: Summary) -> RenderableType:
    """Return the whole answer: the tier first, then the numbers it stands on."""
    ended_early = failure(summary)
    told = [plain(ended_early, style="bold red")] if ended_early else []
    return Group(_headline(summary), *told, _table(summary), *_doubts(summary))


def where(summary: Summary) -> str:
    """Say where the images are, one path a line; printed as it is, since a path that is broken cannot be copied."""
    images = [f"{artifact.role:<7}{artifact.path}" for artifact in summary.artifacts] or [_no_image(summary)]
    return "\n".join(
        [
            *images,
            f"run    {summary.run_id}  (profile show {summary.run_id})",
            f"page   profile report {summary.run_id}",
        ]
    )


def tier_line(summary: Summary) -> str:
    """Say the tier, what limits it, and how far the next one is."""
    tier = summary.tier
    if tier.tier == "none" and summary.outcome == "failed":
        return "Tier none: the run failed."
    if tier.tier == "unknown" and summary.outcome != "completed":
        return f"Tier unknown: the run was {summary.outcome}."
    if tier.tier == "unknown":
        return f"Tier unknown: {' and '.join(_lack(summary, metric) for metric in tier.missing)}."
    over = [_excess(margin) for margin in _next_limits(summary) if margin.metric in tier.limiting]
    if not over:
        return f"Tier {tier.tier}, the best{_not_a_phone(summary)}. {_closest(summary)}."
    return f"Tier {tier.tier}{_not_a_phone(summary)}, limited by {' and '.join(over)}."


def _lack(summary: Summary, metric: Metric) -> str:
    """Say why a metric that the policy needs is missing."""
    kind = {"latency": "broken_clock", "peak_memory": "implausible"}.get(metric)
    kept_back = any(doubt.kind == kind for doubt in summary.doubts)
    return f"{METRIC_WORDS[metric]} was {'withheld' if kept_back else 'not measured'}"


def _next_limits(summary: Summary) -> list[Margin]:
    """Return the limits of the tier above the one that was reached, in the policy's own order of tiers."""
    names = list(dict.fromkeys(margin.tier for margin in summary.tier.margins))
    better = names[: names.index(summary.tier.tier)] if summary.tier.tier in names else names
    return [margin for margin in summary.tier.margins if better and margin.tier == better[-1]]


def policy_line(summary: Summary) -> str:
    """Say whose limits these are, and how far the interval of the latency can change the tier."""
    counts = summary.tier.provenance or {}
    whose = ", ".join(f"{count} {_PROVENANCE[kind]}" for kind, count in counts.items())
    sure = f"; {summary.tier.confidence} (latency sampling only)" if summary.tier.confidence else ""
    return f"Policy {summary.tier.policy}{f': of its limits {whose}' if whose else ''}{sure}"


def _not_a_phone(summary: Summary) -> str:
    if not summary.device.is_phone:
        return NO_PHONE
    return VIRTUAL if any(doubt.kind == "virtual_device" for doubt in summary.doubts) else ""


NO_PHONE, VIRTUAL = ", on this machine, which is no phone", ", on a virtual phone"


def _excess(margin: Margin) -> str:
    value, excess = quantity(margin.metric, margin.value), quantity(margin.metric, -(margin.margin or 0))
    limit = quantity(margin.metric, margin.limit)
    return f"{METRIC_WORDS[margin.metric]} ({value}, {excess} over the {margin.tier} limit of {limit})"


def _closest(summary: Summary) -> str:
    """Name the metric that comes nearest to its limit in the tier reached."""
    margins = [m for m in summary.tier.margins if m.tier == summary.tier.tier and m.share_of_limit is not None]
    if not margins:
        return "It has no limits"
    margin = max(margins, key=lambda m: m.share_of_limit or 0)
    return (
        f"Closest to its limit: {METRIC_WORDS[margin.metric]}, {quantity(margin.metric, margin.value)} "
        f"of {quantity(margin.metric, margin.limit)} ({100 * (margin.share_of_limit or 0):.3g} %, "
        f"{quantity(margin.metric, margin.margin)} left)"
    )


def quantity(metric: Metric, value: float | None) -> str:
    """Write a metric's value in its unit."""
    return format_ns(value) if metric == "latency" else format_bytes(value)


def plain(text: str, *, style: str = "") -> Text:
    """Return foreign words as they are: no markup, no emoji codes, and nothing that moves the cursor."""
    shown = "".join(sign if sign == "\n" or unicodedata.category(sign) != "Cc" else "�" for sign in text)
    return Text(shown, style=style)


def _headline(summary: Summary) -> Text:
    colour = {"D4": "green", "D3": "green", "D2": "yellow", "D1": "yellow"}.get(summary.tier.tier, "red")
    line = Text(tier_line(summary), style=f"bold {colour}")
    line.append(f"\n{policy_line(summary)}", style="dim")
    return line


def failure(summary: Summary) -> str | None:
    """Say where and why a run ended early, or nothing for a completed one."""
    if summary.outcome == "completed":
        return None
    where = f" in {summary.stage}" if summary.stage else ""
    where += f" ({summary.component})" if summary.component and summary.component != summary.stage else ""
    return f"{summary.outcome}{where}: {summary.reason or 'no reason was given'}"


def _table(summary: Summary) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows(summary):
        table.add_row(name, plain(value))
    return table


def rows(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield each number with its name, as `profile show` prints them."""
    unit = summary.device
    yield "model", f"{summary.model}, {summary.task}, {summary.steps} steps, “{summary.prompt}”, seed {summary.seed}"
    yield "device", f"{unit.profile}: {unit.processor or unit.model or 'unknown'}, {unit.operating_system}"
    yield "runs on", _engine(summary)
    yield from _latency_rows(summary)
    yield from _drift_row(summary)
    yield from _gap_row(summary)
    yield from _cold_rows(summary)
    yield "peak memory", _memory(summary)
    yield "size", _sizes(summary)
    yield from _observer_row(summary)
    yield from _energy_rows(summary)
    yield "temperature", _temperature(summary)
    yield "licence", f"{summary.licence.name}, commercial use {summary.licence.commercial_use}"


METERS = {
    "power_rails": "power rails",
    "charge_counter": "the battery's charge counter",
    "battery_current": "the battery's current",
}


def _energy_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    if not summary.energy:
        yield "energy", summary.energy_reason or "unknown"
    for number, found in enumerate(summary.energy):
        yield "  also" if number else "energy", _energy(found)


def _energy(found: Energy) -> str:
    image = f"{found.joules / found.images:.3g} J an image"
    rest = f"; {found.rest_watts:.3g} W at rest, not subtracted" if found.rest_watts is not None else ""
    return (
        f"{image} ({found.joules / found.window_s:.3g} W{rest}), {METERS[found.source]}, "
        f"{counted(found.readings, 'reading')} in {format_ns(found.window_s * NS_PER_S)}; {found.evidence}"
    )


def _engine(summary: Summary) -> str:
    recipe = summary.recipe
    threads = counted(summary.threads, "thread") if summary.threads else "its own choice of threads"
    size = image_size(summary.width, summary.height)
    return f"{summary.engine or recipe.runtime}, {recipe.compute_unit}, {threads}, {precision(recipe)}, {size}"


def image_size(width: int | None, height: int | None) -> str:
    """Say how large the image is, or that there is none."""
    return f"{width}×{height} pixels" if width and height else NO_IMAGE


def _no_image(summary: Summary) -> str:
    return "no image" if summary.width else NO_IMAGE


def precision(recipe: Recipe) -> str:
    """Say how precise a bundle's networks are, and its text encoder where that differs."""
    if recipe.text_encoder == recipe.precision:
        return recipe.precision
    return f"{recipe.precision}, text encoder {recipe.text_encoder}"


def _latency_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    latency = summary.latency_ns
    if latency is None:
        yield "latency", withheld(summary, "broken_clock") or "no timed image"
        return
    yield f"latency, {summary.protocol}", _latency(latency)
    shares = sum(summary.stages_ns.values()) or 1
    yield (
        "  stage medians",
        " · ".join(
            f"{stage} {format_ns(value)} ({100 * value / shares:.0f} %)" for stage, value in summary.stages_ns.items()
        ),
    )


def withheld(summary: Summary, kind: str) -> str | None:
    """Say that a number is kept back, where the doubt that it is impossible was raised."""
    return next((f"withheld: {doubt.detail}" for doubt in summary.doubts if doubt.kind == kind), None)


def _drift_row(summary: Summary) -> Iterator[tuple[str, str]]:
    drift = summary.drift
    if drift is None or not summary.protocol.startswith("sustained"):
        return
    change = f"the last third of the images took {_percent(drift.ratio)} against the first"
    onset = f", changing most at {drift.onset_s:.0f} s" if drift.onset_s is not None else ", no clear change"
    yield "  over time", f"{change}{onset} (the curve: profile report {summary.run_id})"


def _gap_row(summary: Summary) -> Iterator[tuple[str, str]]:
    effect = summary.after_gap
    if effect is None:
        return
    interval = f"95 % interval {_percent(effect.ci95[0])} to {_percent(effect.ci95[1])}; " if effect.ci95 else ""
    yield (
        "  after a pause",
        f"{_percent(effect.ratio)} against images back to back ({interval}n = {effect.n[0]} and {effect.n[1]})",
    )


def _latency(latency: LatencySummary) -> str:
    spread = f" [p25 {format_ns(latency.p25)}, p75 {format_ns(latency.p75)}]" if latency.p25 is not None else ""
    tail = f", p90 {format_ns(latency.p90)}" if latency.p90 is not None else ""
    interval = (
        f"; median's 95 % interval {format_ns(latency.ci95[0])} to {format_ns(latency.ci95[1])} ({_method(latency)})"
        if latency.ci95
        else f"; no interval ({latency.ci_method})"
    )
    return f"median {format_ns(latency.median)}{spread}{tail}, n = {latency.n}{interval}"


def _method(latency: LatencySummary) -> str:
    """Name the interval's method and, where no interval from so few images can cover 95 %, what it can cover."""
    reachable = latency.ci_reachable_coverage
    return latency.ci_method if reachable >= 0.95 else f"{latency.ci_method}, which covers {100 * reachable:.3g} %"


def _cold_rows(summary: Summary) -> Iterator[tuple[str, str]]:
    cold = summary.cold
    if cold.load_ns is None:
        yield "cold", "no process got as far as an image"
        return
    of = f"median of {cold.n} fresh processes" if cold.n > 1 else "one fresh process, no spread"
    yield (
        "cold",
        (
            f"load {format_ns(cold.load_ns)}, then first image {format_ns(cold.first_image_ns)} "
            f"({of}; page cache {cold.page_cache}, compile {cold.compile})"
        ),
    )


def _memory(summary: Summary) -> str:
    if summary.peak_memory_bytes is None:
        return withheld(summary, "implausible") or _unknown_peak(summary)
    peak, idle = format_bytes(summary.peak_memory_bytes), format_bytes(summary.idle_memory_bytes)
    of = f"largest of {summary.memory_processes} processes" if summary.memory_processes > 1 else "one process"
    graphics = summary.graphics_memory_bytes
    apart = f"; the graphics driver held {format_bytes(graphics)} besides" if graphics else ""
    return f"{peak} ({of}), beside {idle} of the idle runner; {summary.memory_definition}{apart}"


def _unknown_peak(summary: Summary) -> str:
    if summary.peak_memory_at_least_bytes is None:
        return "unknown: no process lived to its end"
    least = format_bytes(summary.peak_memory_at_least_bytes)
    return f"unknown: a process was killed, and took its peak with it; at least {least}, that of the others"


def _sizes(summary: Summary) -> str:
    bundle = summary.bundle
    parts = " · ".join(f"{name} {format_bytes(size)}" for name, size in bundle.size_by_component.items())
    return (
        f"{format_bytes(bundle.size_bytes)} for {summary.task} ({parts}); "
        f"{format_bytes(bundle.total_size_bytes)} the whole bundle"
    )


def _observer_row(summary: Summary) -> Iterator[tuple[str, str]]:
    effect = summary.observer_effect
    if effect is None:
        return
    interval = (
        f"95 % interval {_percent(effect.ci95[0])} to {_percent(effect.ci95[1])}" if effect.ci95 else "no interval"
    )
    yield (
        "observer effect",
        f"sampling changes an image's time by {_percent(effect.ratio)} ({interval}; {counted(effect.n, 'pair')})",
    )


def counted(number: int, word: str) -> str:
    """Write a number of things, one or several."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _temperature(summary: Summary) -> str:
    thermal = summary.thermal
    if thermal.max_millicelsius is None:
        return f"unknown: {thermal.reason}"
    start = "unknown" if thermal.start_millicelsius is None else f"{thermal.start_millicelsius / 1000:.1f} °C"
    return f"{start} at the start, {thermal.max_millicelsius / 1000:.1f} °C at most (hottest of processor and skin)"


def _doubts(summary: Summary) -> list[Text]:
    return [
        Text.assemble((f"doubt, {doubt.kind}: ", "yellow"), plain(doubt.detail), " ", plain(doubt.advice, style="dim"))
        for doubt in summary.doubts
    ]
