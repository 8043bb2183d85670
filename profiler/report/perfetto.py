"""A run as a trace for the Perfetto UI: images, loads and stages as slices, memory and the gauges as counters.

The JSON of the Trace Event Format (Google, "Trace Event Format", 2016), which Perfetto reads: times are microseconds
from each run's first event, so that several runs lie under one another on one time axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from profiler.quantities import MIB, NS_PER_US
from profiler.records.run import Run
from profiler.records.trace import ProcessTrace, Span
from profiler.report.entry import Entry, labels
from profiler.report.readings import Reading, scaled

_LOADS, _IMAGES = 1, 2  # tracks of a process; no track has its process' own number, which would mean a main thread
_TRACKS, _PROCESSES = 10, 10_000
Event = dict[str, Any]


def perfetto(entries: Sequence[Entry]) -> bytes:
    """Return a trace of all runs."""
    events = [
        event
        for number, (entry, name) in enumerate(zip(entries, labels(entries), strict=True))
        for event in _run(entry, name, (1 + number) * _PROCESSES * _TRACKS)
    ]
    meta = {"made by": "ondevice-profiler", "runs": ", ".join(entry.run.run_id for entry in entries)}
    return msgspec.json.encode({"displayTimeUnit": "ms", "otherData": meta, "traceEvents": events})


def _run(entry: Entry, name: str, first_pid: int) -> Iterator[Event]:
    run = entry.run
    origin = _origin(run, entry.traces)
    traces = {trace.process: trace for trace in entry.traces}
    numbers = sorted({*traces, *(process.process for process in run.processes), *(s.process for s in run.iterations)})
    for number in numbers:
        pid = first_pid + number * _TRACKS
        yield from _names(pid, f"{name}, process {number} ({run.run_id})")
        yield from _images(run, number, pid, origin)
        if number in traces:
            yield from _spans(traces[number], pid, origin)
            yield from _counters(run, traces[number], pid, origin)


def _origin(run: Run, traces: Sequence[ProcessTrace]) -> int:
    moments = [
        *(sample.start_boot_ns for sample in run.iterations),
        *(span.start_boot_ns for trace in traces for span in trace.spans),
        *(sample.device_boot_ns for trace in traces for sample in trace.memory),
        *(sample.device_boot_ns for trace in traces for sample in trace.environment),
        *(canary.device_boot_ns for canary in run.canaries),
    ]
    return min(moments, default=0)


def _names(pid: int, name: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}}
    for track, words in ((_LOADS, "loads"), (_IMAGES, "images and stages")):
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": pid + track, "args": {"name": words}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": pid + track, "args": {"sort_index": track}}


def _images(run: Run, process: int, pid: int, origin: int) -> Iterator[Event]:
    for sample in run.iterations:
        if sample.process == process:
            args = {"iteration": sample.iteration, "traced": sample.traced, "image_sha256": sample.image_sha256}
            where = {"cat": sample.phase, "pid": pid, "tid": pid + _IMAGES}
            yield _slice(
                f"{sample.phase} image {sample.iteration}",
                sample.start_boot_ns - origin,
                sample.duration_ns,
                where,
                args,
            )


def _spans(trace: ProcessTrace, pid: int, origin: int) -> Iterator[Event]:
    for span in trace.spans:
        load = span.phase == "load"
        where = {"cat": span.phase, "pid": pid, "tid": pid + (_LOADS if load else _IMAGES)}
        args = {"phase": span.phase, "iteration": span.iteration, "component": span.component}
        name = f"load {span.component}" if load else span.stage
        yield _slice(name, span.start_boot_ns - origin, _length(span, trace), where, args)


def _length(span: Span, trace: ProcessTrace) -> int:
    """Return how long a span took; one without an end goes on to the last thing that was read."""
    if span.end_boot_ns is not None:
        return span.end_boot_ns - span.start_boot_ns
    moments = [sample.device_boot_ns for sample in trace.memory] + [
        sample.device_boot_ns for sample in trace.environment
    ]
    return max(0, max(moments, default=span.start_boot_ns) - span.start_boot_ns)


def _slice(name: str, start_ns: int, duration_ns: int, where: Event, args: Event) -> Event:
    return {"ph": "X", "name": name, "ts": start_ns / NS_PER_US, "dur": duration_ns / NS_PER_US, **where, "args": args}


_COUNTERS: tuple[tuple[str, str, Reading], ...] = (
    ("temperature", "°C", scaled("temperature_millicelsius", 1000)),
    ("battery temperature", "°C", scaled("battery_temperature_millicelsius", 1000)),
    ("thermal headroom", "1 is severe", scaled("thermal_headroom", 1)),
    ("battery", "%", scaled("battery_percent", 1)),
    ("battery voltage", "V", scaled("battery_voltage_millivolts", 1000)),
    ("battery current", "as told", scaled("battery_current_raw", 1)),
    ("processor clock", "MHz", scaled("cpu_frequency_khz", 1000)),
    ("clock limit", "MHz", scaled("cpu_frequency_limit_khz", 1000)),
    ("this runner", "% of a core", scaled("own_cpu_percent", 1)),
    ("everything else", "% of a core", scaled("other_cpu_percent", 1)),
)


def _counters(run: Run, trace: ProcessTrace, pid: int, origin: int) -> Iterator[Event]:
    for memory in trace.memory:
        yield _counter("resident memory", "MiB", memory.device_boot_ns - origin, memory.resident_bytes / MIB, pid)
    for sample in trace.environment:
        for name, unit, read in _COUNTERS:
            value = read(sample)
            if value is not None:
                yield _counter(name, unit, sample.device_boot_ns - origin, value, pid)
    for canary in run.canaries:
        if canary.process == trace.process:
            yield _counter("canary", "ms", canary.device_boot_ns - origin, canary.duration_ns / 1e6, pid)


def _counter(name: str, unit: str, at_ns: int, value: float, pid: int) -> Event:
    return {"ph": "C", "name": name, "ts": at_ns / NS_PER_US, "pid": pid, "args": {unit: value}}
