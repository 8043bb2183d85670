"""Doubts about what cannot be true or is not there; the number itself is withheld (`impossible`)."""

from __future__ import annotations

from profiler.quantities import MIB, NS_PER_MS, format_bytes
from profiler.records.run import Doubt, ProcessRecord, Run
from profiler.records.trace import ProcessTrace
from profiler.validity.evidence import Evidence
from profiler.validity.impossible import clock_fault, memory_fault

_LEAST_TRACED = 20
_LEAST_SHARE_SAMPLED = 0.5
_TIE_SHARE = 0.01


def broken_clock(evidence: Evidence) -> Doubt | None:
    """Doubt all times where one cannot be."""
    fault = clock_fault(evidence.run)
    if fault is None:
        return None
    return Doubt(
        kind="broken_clock",
        detail=f"The device's clock cannot be trusted: {fault}. Latency is withheld.",
        advice="Restart the device and measure again; if it comes back, report it with this run's folder.",
    )


def implausible(evidence: Evidence) -> Doubt | None:
    """Doubt a peak below the weights, or below what was seen resident."""
    fault = memory_fault(evidence.run)
    withheld = " Peak memory is withheld." if fault else ""
    fault = fault or _sample_above_peak(evidence)
    if fault is None:
        return None
    return Doubt(
        kind="implausible",
        detail=f"Memory was misread: {fault}.{withheld}",
        advice="The system counts memory in another way than was assumed; report it with this run's folder.",
    )


def _sample_above_peak(evidence: Evidence) -> str | None:
    """The kernel counts resident pages lazily: only a clear excess is a fault."""
    records = {record.process: record for record in evidence.run.processes}
    for trace in evidence.traces:
        peak = _peak(records.get(trace.process))
        seen = max((sample.resident_bytes for sample in trace.memory), default=0)
        if peak is not None and seen > peak * (1 + _TIE_SHARE) + MIB:
            return f"{format_bytes(seen)} were resident in process {trace.process}, whose peak is {format_bytes(peak)}"
    return None


def _peak(record: ProcessRecord | None) -> int | None:
    return record.memory.peak_bytes if record and record.memory else None


def samples_lost(evidence: Evidence) -> Doubt | None:
    """Doubt a run that holds fewer samples than were made."""
    images, memory = _images_lost(evidence.run), _memory_samples_lost(evidence)
    if images is None and memory is None:
        return None
    return Doubt(
        kind="samples_lost",
        detail=f"Samples are missing: {images or memory}.",
        advice="The journal lacks what the job was told to make: report it with this run's folder."
        if images
        else "Other work may have kept the sampler from running: stop it and measure again.",
    )


def _images_lost(run: Run) -> str | None:
    if run.outcome != "completed":
        return None
    settings = run.settings
    expected = {"cold": settings.cold_starts, "warmup": settings.warmups}
    if run.measurement.kind != "sustained":
        expected["timed"] = settings.repeats
    for phase, count in expected.items():
        found = sum(sample.phase == phase for sample in run.iterations)
        if found != count:
            return f"there are {found} {phase} images where {count} were ordered"
    return None


def _memory_samples_lost(evidence: Evidence) -> str | None:
    expected = found = 0
    for trace in evidence.traces:
        wanted, got = _memory_samples(evidence.run, trace)
        expected, found = expected + wanted, found + got
    if expected < _LEAST_TRACED or found >= _LEAST_SHARE_SAMPLED * expected:
        return None
    return f"memory was read {found} times where {expected} were due"


def _memory_samples(run: Run, trace: ProcessTrace) -> tuple[int, int]:
    """Count due and found samples while sampled images were made."""
    images = [sample for sample in run.iterations if sample.process == trace.process and sample.traced]
    windows = [(image.start_boot_ns, image.start_boot_ns + image.duration_ns) for image in images]
    interval_ns = run.sampling.memory_interval_ms * NS_PER_MS
    expected = sum(end - start for start, end in windows) // interval_ns
    if not trace.memory and "memory" in trace.missing:
        return 0, 0
    moments = [sample.device_boot_ns for sample in trace.memory]
    return expected, _count_inside(moments, windows)


def _count_inside(moments: list[int], windows: list[tuple[int, int]]) -> int:
    """Count the moments inside any window; both come in order."""
    count, index = 0, 0
    for start, end in windows:
        while index < len(moments) and moments[index] < start:
            index += 1
        while index < len(moments) and moments[index] <= end:
            index, count = index + 1, count + 1
    return count
