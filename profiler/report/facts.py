"""A run's facts as rows of words, for every output that people read: what is missing says why, and is never 0."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from profiler.quantities import NS_PER_S, format_bytes, format_ns
from profiler.records.run import Energy, Run
from profiler.records.summary import LatencySummary, Summary
from profiler.report.terminal import METERS, image_size, precision, withheld

Row = tuple[str, str]


class Tile(NamedTuple):
    """One metric that a tier looks at: its value large, what stands behind it small."""

    name: str
    value: str
    notes: tuple[str, ...]


class Grid(NamedTuple):
    """A table of words: one head over the columns, the first column naming each row."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tiles(summary: Summary) -> list[Tile]:
    """Return latency, peak memory and size, each with n and spread, and energy where it was measured."""
    energy = [_energy_tile(summary.energy[0])] if summary.energy else []
    return [_latency_tile(summary), _memory_tile(summary), _size_tile(summary), *energy]


def _energy_tile(found: Energy) -> Tile:
    rest = () if found.rest_watts is None else (f"{found.rest_watts:.3g} W at rest before, not subtracted",)
    notes = (
        f"an image, mean of {found.images}; {METERS[found.source]}",
        f"{found.joules / found.window_s:.3g} W over {found.window_s:.0f} s",
        *rest,
    )
    return Tile("Energy", f"{found.joules / found.images:.3g} J", notes)


def _latency_tile(summary: Summary) -> Tile:
    latency = summary.latency_ns
    if latency is None:
        return Tile("Latency", "not measured", (withheld(summary, "broken_clock") or "no timed image",))
    return Tile(
        "Latency",
        format_ns(latency.median),
        (
            f"median of n = {latency.n}, {summary.protocol}",
            spread(latency),
            interval(latency),
        ),
    )


def spread(latency: LatencySummary) -> str:
    """Say where the middle half of the samples lies."""
    if latency.p25 is None:
        return "one sample has no spread"
    return f"p25 to p75: {format_ns(latency.p25)} to {format_ns(latency.p75)}"


def interval(latency: LatencySummary) -> str:
    """Say the median's interval, or why there is none."""
    if latency.ci95 is None:
        return f"no interval ({latency.ci_method})"
    return f"95 % interval: {format_ns(latency.ci95[0])} to {format_ns(latency.ci95[1])}"


def _memory_tile(summary: Summary) -> Tile:
    if summary.peak_memory_bytes is None:
        least = summary.peak_memory_at_least_bytes
        known = f"a process was killed; at least {format_bytes(least)}" if least else "no process lived to its end"
        return Tile("Peak memory", "unknown", (withheld(summary, "implausible") or known,))
    count = summary.memory_processes
    of = f"largest of {count} processes" if count > 1 else "one process, no spread"
    notes = (of, f"idle runner: {format_bytes(summary.idle_memory_bytes)}", f"{summary.memory_definition}")
    return Tile("Peak memory", format_bytes(summary.peak_memory_bytes), notes)


def _size_tile(summary: Summary) -> Tile:
    bundle = summary.bundle
    return Tile(
        "Size",
        format_bytes(bundle.size_bytes),
        (
            f"files that {summary.task} needs",
            f"whole bundle: {format_bytes(bundle.total_size_bytes)}",
            f"{sum(bundle.parameters_by_component.values()):,} parameters".replace(",", " "),
        ),
    )


def settings(run: Run) -> list[Row]:
    """Return what was asked for: everything that can change a result or its cost."""
    asked, recipe, measurement = run.settings, run.recipe, run.measurement
    gap = f", {measurement.gap_s:g} s apart" if measurement.gap_s is not None else ""
    minutes = f", {measurement.minutes:g} min" if measurement.minutes is not None else ""
    return [
        ("prompt", asked.prompt or "none"),
        ("negative prompt", asked.negative_prompt or "none"),
        *([("source image", asked.source_image)] if asked.source_image else []),
        ("seed", str(asked.seed)),
        ("steps", f"{asked.steps}, {asked.scheduler}"),
        ("guidance", guidance(run)),
        ("image", image_size(asked.width, asked.height)),
        *([("made-up inputs", ", ".join(asked.made_up_inputs))] if asked.made_up_inputs else []),
        ("protocol", f"{measurement.kind}{gap}{minutes}"),
        ("images", f"{asked.cold_starts} cold starts, {asked.warmups} warm-ups, {asked.repeats} timed asked for"),
        (
            "runtime",
            f"{run.engine or recipe.runtime}, {recipe.compute_unit}, {precision(recipe)}, {recipe.load_policy}",
        ),
        ("threads", str(asked.threads) if asked.threads else "the runtime's own choice"),
        ("bundle", f"sha256 {run.bundle.sha256}"),
        ("weights", _source(run)),
        ("inputs", f"sha256 {asked.inputs_sha256}"),
    ]


def guidance(run: Run) -> str:
    """Say how strongly words and source image steer."""
    scales = run.settings.guidance
    named = (("text", scales.text), ("image", scales.image))
    return ", ".join(f"{name} {scale:g}" for name, scale in named if scale is not None)


def _source(run: Run) -> str:
    source = run.bundle.source
    revision = f" at {source.revision}" if source.revision else ""
    return f"{source.repo}{revision}, sha256 {source.weights_sha256}"


def conditions(run: Run) -> list[Row]:
    """Return the device and the state it started in."""
    unit, start = run.unit, run.conditions
    return [
        ("device", f"{unit.profile}{', virtual' if unit.virtual else ''}{'' if unit.is_phone else ', no phone'}"),
        ("model", unit.model or "unknown: the device does not say"),
        ("processor", unit.processor or "unknown: the device does not say"),
        ("cores", str(unit.logical_cores) if unit.logical_cores else "unknown: the device does not say"),
        ("memory", f"{format_bytes(unit.memory_bytes)}, {format_bytes(start.available_memory_bytes)} available"),
        ("free storage", format_bytes(start.free_storage_bytes)),
        ("system", f"{unit.operating_system}, {unit.os_build}"),
        ("battery", _battery(run)),
        ("temperature", _start_temperature(run)),
        ("load average", "unknown" if start.load_average_1m is None else f"{start.load_average_1m:.2f} (one minute)"),
        ("clock governor", start.cpu_governor or "unknown: the device does not say"),
        *_clock_limit(run),
        *_power_save(run),
        ("started", moment(run.started_wall_ns)),
        ("ended", f"{moment(run.ended_wall_ns)}, after {format_ns(run.ended_wall_ns - run.started_wall_ns)}"),
        ("profiler", f"{run.host_version}, runner {run.runner_version or 'unknown'}"),
    ]


def _battery(run: Run) -> str:
    power = run.conditions.power
    if power.battery_percent is None:
        return f"unknown: {power.reason or 'the device does not say'}"
    supply = {True: "on external power", False: "on battery", None: "supply unknown"}[power.external_power]
    return f"{power.battery_percent:g} %, {supply}"


def _start_temperature(run: Run) -> str:
    start = run.conditions.temperature_millicelsius
    if start is None:
        return f"unknown: {run.conditions.temperature_reason or 'the device does not say'}"
    highest = run.max_temperature_millicelsius
    return f"{start / 1000:.1f} °C at the start" + (f", {highest / 1000:.1f} °C at most" if highest is not None else "")


def _clock_limit(run: Run) -> Iterator[Row]:
    limit, highest = run.conditions.cpu_frequency_limit_khz, run.conditions.cpu_frequency_max_khz
    if limit is not None:
        yield "clock limit", f"{limit / 1e6:.2f} GHz" + (f" of {highest / 1e6:.2f} GHz" if highest is not None else "")


def _power_save(run: Run) -> Iterator[Row]:
    saving, source = run.conditions.power_save, run.conditions.power_save_source
    if saving is not None:
        yield "power saving", ("on" if saving else "off") + (f" ({source})" if source else "")


def moment(wall_ns: int, shape: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Write a time of the wall clock, in UTC."""
    try:
        return f"{datetime.fromtimestamp(wall_ns // NS_PER_S, UTC).strftime(shape)} UTC"
    except (ValueError, OverflowError, OSError):
        return "unknown: its clock stood outside the calendar"


def processes(run: Run) -> Grid:
    """Return each runner process: how it started, what it held, and how it ended."""
    head = ("process", "launch", "load", "first image", "peak memory", "idle", "page cache", "compile", "outcome")
    return Grid(head, tuple(_process_cells(run)))


def _process_cells(run: Run) -> Iterator[tuple[str, ...]]:
    for process in run.processes:
        load_ns = sum(process.load_ns_by_component.values()) if process.load_ns_by_component else None
        yield (
            str(process.process),
            format_ns(process.launch_ns),
            format_ns(load_ns),
            format_ns(process.first_image_ns),
            format_bytes(process.memory.peak_bytes if process.memory else None),
            format_bytes(process.idle_memory.resident_bytes if process.idle_memory else None),
            process.page_cache,
            process.compile,
            process.outcome if process.reason is None else f"{process.outcome}: {process.reason}",
        )


def components(run: Run) -> Grid:
    """Return each component's size, parameters, and load time in the fresh processes, in order."""
    loads = [process.load_ns_by_component for process in run.processes]
    rows = tuple(
        (
            name,
            format_bytes(size),
            f"{run.bundle.parameters_by_component.get(name, 0):,}".replace(",", " "),
            " · ".join(format_ns(load[name]) for load in loads if name in load) or "not loaded",
        )
        for name, size in run.bundle.size_by_component.items()
    )
    return Grid(("component", "size", "parameters", "load in each process"), rows)


def samples(run: Run, most: int | None = None) -> Grid:
    """Return images in the order made, times in milliseconds with all their digits; of too many the first and last."""
    number = len(run.iterations)
    half = number if most is None or number <= most else most // 2
    numbered = [*zip(range(1, half + 1), run.iterations, strict=False)]
    if half < number:
        numbered += zip(range(number - half + 1, number + 1), run.iterations[-half:], strict=True)
    stages = list(dict.fromkeys(stage.stage for sample in run.iterations for stage in sample.stages))
    head = (
        "image",
        "kind",
        "process",
        "sampled",
        "start, s",
        "time, ms",
        *(f"{stage}, ms" for stage in stages),
        "gap, ms",
    )
    first = run.iterations[0].start_boot_ns if run.iterations else 0
    rows = tuple(
        (
            str(number),
            sample.phase,
            str(sample.process),
            "yes" if sample.traced else "no",
            f"{(sample.start_boot_ns - first) / 1e9:.3f}",
            _ms(sample.duration_ns),
            *(_ms(sum(s.duration_ns for s in sample.stages if s.stage == stage)) for stage in stages),
            "" if sample.gap_ns is None else _ms(sample.gap_ns),
        )
        for number, sample in numbered
    )
    return Grid(head, rows)


def _ms(duration_ns: int) -> str:
    return f"{duration_ns / 1e6:.3f}"
