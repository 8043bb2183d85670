"""A run and a policy, summed up as one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from profiler import effects, stats, tiers
from profiler.effects import timed
from profiler.records.event import MemoryReading, StageTime
from profiler.records.policy import Measured, Policy, TierVerdict
from profiler.records.run import IterationSample, ProcessRecord, Run
from profiler.records.summary import (
    ArtifactSummary,
    BundleSummary,
    ColdSummary,
    DriftSummary,
    LatencySummary,
    ObserverSummary,
    RatioSummary,
    Summary,
    ThermalSummary,
    TierSummary,
)
from profiler.validity import clock_fault, memory_fault


def summarise(run: Run, folder: Path, policy: Policy) -> Summary:
    """Sum a run up; `folder` is where its images are."""
    clocked = _trusted(run)
    latency = _latency(clocked)
    return Summary(
        run_id=run.run_id,
        outcome=run.outcome,
        reason=run.reason,
        stage=run.stage,
        component=run.component,
        device=run.unit,
        model=run.model,
        recipe=run.recipe,
        task=run.task,
        prompt=run.settings.prompt,
        seed=run.settings.seed,
        steps=run.settings.steps,
        height=run.settings.height,
        width=run.settings.width,
        engine=run.engine,
        threads=run.settings.threads,
        protocol=protocol_text(run),
        bundle=_bundle(run),
        latency_ns=latency,
        stages_ns=stage_medians(timed(clocked)),
        cold=_cold(clocked.processes),
        peak_memory_bytes=peak_memory_bytes(run),
        peak_memory_at_least_bytes=_largest((p.memory for p in run.processes), peak=True),
        memory_processes=sum(process.memory is not None for process in run.processes),
        idle_memory_bytes=_largest(p.idle_memory for p in run.processes),
        memory_definition=next((p.memory.definition for p in run.processes if p.memory), None),
        observer_effect=_observer(clocked),
        energy_joules=run.energy[0].joules / run.energy[0].images if run.energy else None,
        energy_reason=run.energy_reason or (None if run.energy else "not measured"),
        energy=run.energy,
        graphics_memory_bytes=_graphics(run.processes),
        thermal=_thermal(run),
        doubts=run.doubts,
        tier=_tier(tiers.judge(policy, measured(run, latency)), policy),
        licence=run.licence,
        artifacts=tuple(
            ArtifactSummary(path=str(folder / image.path), role=image.role, sha256=image.sha256) for image in run.images
        ),
        failed_attempts=sum(process.outcome == "failed" for process in run.processes),
        drift=_drift(clocked),
        after_gap=_after_gap(clocked),
        canary_ratio=effects.canary_ratio(run),
    )


def measured(run: Run, latency: LatencySummary | None) -> Measured:
    """Return what a policy is asked about: warm median, lifetime peak, bytes that the task needs.

    A run that was stopped from outside measured no failure: its latency and memory are missing.
    """
    if run.outcome not in ("completed", "failed"):
        return Measured(completed=True, latency_ns=None, peak_memory_bytes=None, size_bytes=run.bundle.size_bytes)
    return Measured(
        completed=run.outcome == "completed",
        latency_ns=latency.median if latency else None,
        latency_ci95_ns=latency.ci95 if latency else None,
        peak_memory_bytes=peak_memory_bytes(run),
        size_bytes=run.bundle.size_bytes,
    )


def peak_memory_bytes(run: Run) -> int | None:
    """Return the largest lifetime peak of the session's fresh processes, load included.

    None where one of them was killed, since its peak is unknown and most likely the largest, and where it cannot be.
    """
    if memory_fault(run) or any(process.memory is None for process in run.processes):
        return None
    return _largest((p.memory for p in run.processes), peak=True)


def protocol_text(run: Run) -> str:
    """Name the protocol of measurement with its parameter."""
    measurement = run.measurement
    if measurement.kind == "spaced":
        return f"spaced {measurement.gap_s:g} s"
    return f"sustained {measurement.minutes:g} min" if measurement.kind == "sustained" else "burst"


def stage_medians(samples: Sequence[IterationSample]) -> dict[str, float]:
    """Return each stage's median duration in ns; a stage that comes twice in an image counts as its sum."""
    totals: dict[str, list[int]] = {}
    for sample in samples:
        for stage, duration_ns in _by_stage(sample.stages).items():
            totals.setdefault(stage, []).append(duration_ns)
    return {stage: float(median(durations)) for stage, durations in totals.items()}


def _by_stage(stages: Iterable[StageTime]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for stage in stages:
        sums[stage.stage] = sums.get(stage.stage, 0) + stage.duration_ns
    return sums


def _trusted(run: Run) -> Run:
    """Return a run without its times where its clock cannot be trusted: none of them is to become a number."""
    if clock_fault(run) is None:
        return run
    untimed = tuple(replace(process, load_ns_by_component={}, first_image_ns=None) for process in run.processes)
    return replace(run, iterations=(), processes=untimed)


def _latency(run: Run) -> LatencySummary | None:
    samples = tuple(sample.duration_ns for sample in timed(run))
    if not samples:
        return None
    summary = stats.summarise(samples)
    return LatencySummary(
        samples=samples,
        outliers=len(stats.outliers(samples)),
        resolution_ns=stats.resolution(samples),
        **{name: getattr(summary, name) for name in stats.Summary.__struct_fields__},
    )


def _cold(processes: Sequence[ProcessRecord]) -> ColdSummary:
    loads = tuple(sum(p.load_ns_by_component.values()) for p in processes if p.first_image_ns is not None)
    firsts = tuple(p.first_image_ns for p in processes if p.first_image_ns is not None)
    caches = {p.page_cache for p in processes}
    return ColdSummary(
        load_ns=float(median(loads)) if loads else None,
        first_image_ns=float(median(firsts)) if firsts else None,
        n=len(firsts),
        load_ns_samples=loads,
        first_image_ns_samples=firsts,
        page_cache=caches.pop() if len(caches) == 1 else "unknown",
        compile="first",
    )


def _largest(readings: Iterable[MemoryReading | None], *, peak: bool = False) -> int | None:
    values = [reading.peak_bytes if peak else reading.resident_bytes for reading in readings if reading is not None]
    known = [value for value in values if value is not None]
    return max(known, default=None)


def _graphics(processes: Sequence[ProcessRecord]) -> int | None:
    told = [process.system_memory.graphics_bytes for process in processes if process.system_memory]
    return max((size for size in told if size is not None), default=None)


def _bundle(run: Run) -> BundleSummary:
    return BundleSummary(**{name: getattr(run.bundle, name) for name in BundleSummary.__struct_fields__})


def _observer(run: Run) -> ObserverSummary | None:
    ratio = effects.observer_effect(run)
    return ObserverSummary(ratio=ratio.median, ci95=ratio.ci95, n=ratio.n) if ratio else None


def _after_gap(run: Run) -> RatioSummary | None:
    ratio = effects.after_gap(run)
    return RatioSummary(ratio=ratio.ratio, ci95=ratio.ci95, n=(ratio.n_above, ratio.n_below)) if ratio else None


def _drift(run: Run) -> DriftSummary | None:
    """Sum up how latency changed over the run: the curve is what `sustained` is for."""
    trend = effects.trend(run)
    if trend is None:
        return None
    starts_s = effects.start_seconds(run)
    return DriftSummary(
        ratio=trend.ratio,
        p_value=min(1.0, 2 * min(trend.p_slower, trend.p_faster)),
        onset_s=None if trend.change_at is None else starts_s[trend.change_at],
        curve=stats.curve(starts_s, [sample.duration_ns for sample in timed(run)]),
    )


def _thermal(run: Run) -> ThermalSummary:
    return ThermalSummary(
        start_millicelsius=run.conditions.temperature_millicelsius,
        max_millicelsius=run.max_temperature_millicelsius,
        reason=run.temperature_reason,
    )


def _tier(verdict: TierVerdict, policy: Policy) -> TierSummary:
    limits = [limit for rule in policy.tiers for limit in rule.limits]
    return TierSummary(
        **{name: getattr(verdict, name) for name in TierVerdict.__struct_fields__},
        provenance=dict(Counter(limit.provenance for limit in limits)),
    )
