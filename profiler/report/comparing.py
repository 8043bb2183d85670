"""Several runs side by side, as rows of words: what was measured, and where they are not like for like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from profiler import stats
from profiler.quantities import format_bytes, format_ns
from profiler.records.summary import LatencySummary, Summary
from profiler.report.entry import Entry
from profiler.report.facts import guidance
from profiler.report.terminal import NO_PHONE, VIRTUAL, failure, image_size, tier_line
from profiler.validity import same_image


class Compared(NamedTuple):
    """One line of a comparison: its name, a cell a run, and whether what should be alike differs."""

    name: str
    cells: tuple[str, ...]
    differs: bool


def comparison(entries: Sequence[Entry]) -> tuple[list[Compared], list[Compared]]:
    """Return what was measured, and under which conditions; runs are columns."""
    results = [Compared(name, tuple(read(entry) for entry in entries), False) for name, read in _RESULTS]
    alike = [(name, tuple(read(entry) for entry in entries)) for name, read in _ALIKE]
    return results, [Compared(name, cells, len(set(cells)) > 1) for name, cells in alike]


def lead(entries: Sequence[Entry], names: Sequence[str]) -> str:
    """Say how several runs ended, which was fastest and which took the least memory, and whether they are alike."""
    best = [said for said in (_fastest(entries, names), _smallest(entries, names)) if said]
    told = [
        _tiers(entries),
        "; ".join(best),
        _difference(entries, names),
        _likeness(entries),
        _same_images(entries, names),
    ]
    return "".join(f"{sentence[0].upper()}{sentence[1:]}. " for sentence in told if sentence).rstrip()


def _tiers(entries: Sequence[Entry]) -> str:
    tiers = Counter(entry.summary.tier.tier for entry in entries)
    return ", ".join(
        f"{number} of {len(entries)} reach {tier}" if tier.startswith("D") else f"{number} {_NO_TIER[tier]}"
        for tier, number in tiers.most_common()
    )


def _timed(entries: Sequence[Entry], names: Sequence[str]) -> list[tuple[LatencySummary, str]]:
    """Return the runs that ended well and have a latency, the fastest first."""
    pairs = zip(entries, names, strict=True)
    timed = [(entry.summary.latency_ns, name) for entry, name in pairs if entry.summary.outcome == "completed"]
    return sorted(((latency, name) for latency, name in timed if latency), key=lambda pair: pair[0].median)


def _fastest(entries: Sequence[Entry], names: Sequence[str]) -> str:
    timed = _timed(entries, names)
    if len(timed) < 2 or timed[0][0].median == timed[1][0].median:
        return ""
    latency, name = timed[0]
    return f"lowest median latency: {format_ns(latency.median)} ({name}, n = {latency.n})"


def _difference(entries: Sequence[Entry], names: Sequence[str]) -> str:
    """Say of two runs how much longer the slower takes, and whether that is more than the noise of its images."""
    timed = _timed(entries, names)
    if len(entries) != 2 or len(timed) != 2:
        return ""
    (fast, fast_name), (slow, slow_name) = timed
    ratio = stats.ratio_of_medians(slow.samples, fast.samples)
    longer = f"{slow_name} takes {ratio.ratio:.3f} times as long as {fast_name}"
    if ratio.ci95 is None:
        return f"{longer}, from too few images to say how surely"
    low, high = ratio.ci95
    surely = "more than noise" if low > 1 else "within the noise of their images"
    return f"{longer} (95 % interval {low:.3f} to {high:.3f}): {surely}"


def _smallest(entries: Sequence[Entry], names: Sequence[str]) -> str:
    pairs = zip(entries, names, strict=True)
    peaks = [(entry.summary.peak_memory_bytes, name) for entry, name in pairs if entry.summary.outcome == "completed"]
    held = sorted((peak, name) for peak, name in peaks if peak)
    if len(held) < 2 or held[0][0] == held[1][0]:
        return ""
    return f"lowest peak memory: {format_bytes(held[0][0])} ({held[0][1]})"


def _likeness(entries: Sequence[Entry]) -> str:
    differing = [line.name for line in comparison(entries)[1] if line.differs]
    if differing:
        return f"they differ in {', '.join(differing)}: not like for like"
    return "they agree in all conditions that are listed"


def _same_images(entries: Sequence[Entry], names: Sequence[str]) -> str:
    """Tell of images that should differ and do not: a cache, or a plan that ignores its inputs."""
    named = {entry.run.run_id: name for entry, name in zip(entries, names, strict=True)}
    pairs = [f"{named[first]} and {named[second]}" for first, second in same_image([e.run for e in entries])]
    return (
        f"the same image came of different inputs in {', '.join(pairs)}: one of them may ignore its inputs"
        if pairs
        else ""
    )


_NO_TIER = {"none": "with no tier", "unknown": "of unknown tier"}


def _of_latency(read: Callable[[LatencySummary], str]) -> Callable[[Entry], str]:
    return lambda entry: read(entry.summary.latency_ns) if entry.summary.latency_ns else "not measured"


def _quartiles(latency: LatencySummary) -> str:
    return "one sample" if latency.p25 is None else f"{format_ns(latency.p25)} to {format_ns(latency.p75)}"


def _bounds(latency: LatencySummary) -> str:
    return (
        f"none ({latency.ci_method})"
        if latency.ci95 is None
        else f"{format_ns(latency.ci95[0])} to {format_ns(latency.ci95[1])}"
    )


def _hottest(entry: Entry) -> str:
    highest = entry.summary.thermal.max_millicelsius
    return "unknown" if highest is None else f"{highest / 1000:.1f} °C"


def _why(summary: Summary) -> str:
    """Return the answer without what the tier's own line says already."""
    said = tier_line(summary).removesuffix(".")
    without = said.removeprefix(f"Tier {summary.tier.tier}").removeprefix(", the best")
    return without.removeprefix(NO_PHONE).removeprefix(VIRTUAL).lstrip(":., ") or said


def _cold(entry: Entry, median_ns: float | None) -> str:
    return "no process got as far" if median_ns is None else f"{format_ns(median_ns)} (n = {entry.summary.cold.n})"


_YES_NO = {True: "on", False: "off", None: "unknown"}


def _power(entry: Entry) -> str:
    return {True: "external", False: "battery", None: "unknown"}[entry.run.conditions.power.external_power]


def _source(entry: Entry) -> str:
    return next((image.sha256[:12] for image in entry.run.images if image.role == "source"), "none")


_Reader = Callable[[Entry], str]
_RESULTS: tuple[tuple[str, _Reader], ...] = (
    ("id", lambda entry: entry.run.run_id),
    ("tier", lambda entry: entry.summary.tier.tier),
    ("why", lambda entry: _why(entry.summary)),
    ("outcome", lambda entry: failure(entry.summary) or "completed"),
    ("latency, median", _of_latency(lambda latency: f"{format_ns(latency.median)} (n = {latency.n})")),
    ("latency, p25 to p75", _of_latency(_quartiles)),
    ("latency, 95 % interval", _of_latency(_bounds)),
    ("load, median", lambda entry: _cold(entry, entry.summary.cold.load_ns)),
    ("first image, median", lambda entry: _cold(entry, entry.summary.cold.first_image_ns)),
    ("peak memory", lambda entry: format_bytes(entry.summary.peak_memory_bytes)),
    ("size for the task", lambda entry: format_bytes(entry.summary.bundle.size_bytes)),
    ("temperature, largest", _hottest),
    ("doubts", lambda entry: ", ".join(doubt.kind.replace("_", " ") for doubt in entry.summary.doubts) or "none"),
)
_ALIKE: tuple[tuple[str, _Reader], ...] = (
    (
        "device",
        lambda entry: f"{entry.run.unit.profile}: {entry.run.unit.processor or entry.run.unit.model or 'unknown'}",
    ),
    ("system", lambda entry: f"{entry.run.unit.operating_system}, {entry.run.unit.os_build}"),
    ("protocol", lambda entry: entry.summary.protocol),
    ("model", lambda entry: entry.run.model),
    ("bundle", lambda entry: entry.run.bundle.sha256[:12]),
    ("task", lambda entry: entry.run.task),
    ("steps", lambda entry: str(entry.run.settings.steps)),
    ("image", lambda entry: image_size(entry.run.settings.width, entry.run.settings.height)),
    ("precision", lambda entry: entry.run.recipe.precision),
    ("text encoder", lambda entry: entry.run.recipe.text_encoder),
    ("compute unit", lambda entry: entry.run.recipe.compute_unit),
    ("loading", lambda entry: entry.run.recipe.load_policy),
    ("scheduler", lambda entry: entry.run.settings.scheduler),
    ("guidance", lambda entry: guidance(entry.run)),
    ("runtime", lambda entry: entry.run.engine or entry.run.recipe.runtime),
    (
        "threads",
        lambda entry: str(entry.run.settings.threads) if entry.run.settings.threads else "the runtime's choice",
    ),
    ("power", _power),
    ("power saving", lambda entry: _YES_NO[entry.run.conditions.power_save]),
    ("governor", lambda entry: entry.run.conditions.cpu_governor or "unknown"),
    ("prompt", lambda entry: entry.run.settings.prompt or "none"),
    ("negative prompt", lambda entry: entry.run.settings.negative_prompt or "none"),
    ("source image", _source),
    ("seed", lambda entry: str(entry.run.settings.seed)),
)
