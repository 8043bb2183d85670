"""The doubt that the device slowed down while it was measured, by whatever tells it."""

from __future__ import annotations

from collections.abc import Iterator

from profiler import effects
from profiler.quantities import NS_PER_S
from profiler.records.run import Doubt
from profiler.validity.evidence import Evidence

CANARY_RATIO = 1.10
_LIMIT_SHARE = 0.98
_NOT_THE_CLOCK = "The canary kept its time: it was not the processor's clock."


def throttled(evidence: Evidence) -> Doubt | None:
    """Doubt a run in which clocks were limited, images grew slower, or the canary did.

    No status enum is asked: phones say "nominal" while they run at half their clock (docs/method.md).
    """
    processor = [*_limited_clock(evidence), *_counted(evidence), *_slower_canary(evidence)]
    signs = [*processor, *_slower_images(evidence)]
    if not signs:
        return None
    detail = f"The device slowed down: {'; '.join(signs)}."
    if not processor and _canary_kept_its_time(evidence):
        return Doubt(kind="throttled", detail=f"{detail} {_NOT_THE_CLOCK}", advice=_advice_without_heat(evidence))
    return Doubt(kind="throttled", detail=detail, advice=_advice(evidence))


def _canary_kept_its_time(evidence: Evidence) -> bool:
    """Tell whether the canary speaks for the processor; of an accelerator it knows nothing."""
    return evidence.run.recipe.compute_unit == "cpu" and effects.canary_ratio(evidence.run) is not None


def _advice_without_heat(evidence: Evidence) -> str:
    if evidence.is_shared:
        return _advice(evidence)
    return "Look for other work, on a virtual machine that of its host too, and measure again."


def _limited_clock(evidence: Evidence) -> Iterator[str]:
    conditions = evidence.run.conditions
    start, hardware = conditions.cpu_frequency_limit_khz, conditions.cpu_frequency_max_khz
    limits = [s.cpu_frequency_limit_khz for s in evidence.environment if s.cpu_frequency_limit_khz]
    lowest = min(limits, default=None)
    if start and lowest and lowest < _LIMIT_SHARE * start:
        yield f"its clock was limited from {_ghz(start)} at the start to {_ghz(lowest)}"
    elif start and hardware and start < _LIMIT_SHARE * hardware:
        yield f"its clock was limited to {_ghz(start)} of {_ghz(hardware)} from the start"


def _counted(evidence: Evidence) -> Iterator[str]:
    counts = [s.throttle_count for s in evidence.environment if s.throttle_count is not None]
    if counts and counts[-1] > counts[0]:
        yield f"the processor counted {counts[-1] - counts[0]} times that heat slowed it"


def _slower_images(evidence: Evidence) -> Iterator[str]:
    trend = evidence.trend
    if trend is None or not trend.slower:
        return
    stage = effects.slowest_stage(evidence.run)
    where = f", most in {stage[0]} (+{100 * (stage[1] - 1):.0f} %)" if stage and stage[1] > 1 else ""
    since = _since(evidence, trend.change_at)
    yield f"the last third of the images took {100 * (trend.ratio - 1):.0f} % longer than the first{where}{since}"


def _since(evidence: Evidence, change_at: int | None) -> str:
    if change_at is None:
        return ""
    seconds = (evidence.timed[change_at].start_boot_ns - evidence.timed[0].start_boot_ns) / NS_PER_S
    return f", from timed image {change_at + 1} of {len(evidence.timed)} ({seconds:.3g} s) on"


def _slower_canary(evidence: Evidence) -> Iterator[str]:
    ratio = effects.canary_ratio(evidence.run)
    if ratio is not None and ratio > CANARY_RATIO:
        yield f"the canary workload took {ratio:.2f} times as long as on the cool device"


def _advice(evidence: Evidence) -> str:
    measurement = evidence.run.measurement
    if evidence.is_shared:
        return f"Other work took {evidence.cores_taken_by_others:.1f} cores, which looks the same: stop it first."
    if measurement.kind == "sustained":
        return "This is what sustained measures: quote the curve and its end; for the cool latency, --protocol spaced."
    if measurement.kind == "spaced":
        return f"The pauses of {measurement.gap_s:g} s were too short: raise --gap, or cool the device."
    return (
        "Let it cool; then --protocol spaced measures it cool, and --protocol sustained measures the slowdown itself."
    )


def _ghz(khz: int) -> str:
    return f"{khz / 1_000_000:.2f} GHz"
