"""From a journal's events to what one process did and held over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profiler.records.event import AnyEvent, Begin, IterationDone, LoadDone, Stop, Trace
from profiler.records.trace import ProcessTrace, Span


def trace_of(process: int, events: Sequence[AnyEvent]) -> ProcessTrace:
    """Put one process's samples and spans together, in order."""
    traces = [event for event in events if isinstance(event, Trace)]
    return ProcessTrace(
        process=process,
        spans=tuple(_spans(events)),
        memory=tuple(sample for trace in traces for sample in trace.memory),
        environment=tuple(sample for trace in traces for sample in trace.environment),
        missing={gauge: reason for trace in traces for gauge, reason in trace.missing.items()},
    )


def _spans(events: Sequence[AnyEvent]) -> Iterator[Span]:
    """Yield loads and stages; each lasts until the next begins, and the last one until its end was written."""
    open_span: Begin | None = None
    for event in events:
        if open_span is not None and isinstance(event, Begin | LoadDone | IterationDone | Stop):
            yield _span(open_span, None if isinstance(event, Stop) and event.outcome != "completed" else _end_of(event))
            open_span = None
        if isinstance(event, Begin):
            open_span = event
    if open_span is not None:
        yield _span(open_span, None)


def _end_of(event: AnyEvent) -> int:
    """Return when what was going on ended: an image's own time, since its event is written after it was hashed."""
    if isinstance(event, IterationDone):
        return event.start_boot_ns + event.duration_ns
    return event.device_boot_ns


def _span(begin: Begin, end_boot_ns: int | None) -> Span:
    return Span(
        phase=begin.phase,
        iteration=begin.iteration,
        stage=begin.stage,
        component=begin.component,
        start_boot_ns=begin.device_boot_ns,
        end_boot_ns=end_boot_ns,
    )
