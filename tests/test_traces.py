from __future__ import annotations

from msgspec.structs import replace

from profiler.records.event import Begin, IterationDone, LoadDone, Stop
from profiler.traces import trace_of
from tests.messages_for_tests import make_failed_journal, make_journal
from tests.sessions_for_tests import until

JOURNAL = make_journal()


def test_a_whole_journal_gives_each_load_and_stage_its_span() -> None:
    trace = trace_of(2, JOURNAL)
    assert trace.process == 2
    begun = [event for event in JOURNAL if isinstance(event, Begin)]
    assert [(span.phase, span.stage, span.start_boot_ns) for span in trace.spans] == [
        (event.phase, event.stage, event.device_boot_ns) for event in begun
    ]
    assert all(span.end_boot_ns is not None for span in trace.spans)


def test_a_load_ends_when_it_is_written_and_a_stage_when_the_next_begins_or_the_image_ends() -> None:
    trace = trace_of(0, JOURNAL)
    loaded = [event.device_boot_ns for event in JOURNAL if isinstance(event, LoadDone)]
    assert [span.end_boot_ns for span in trace.spans if span.phase == "load"] == loaded
    cold = [span for span in trace.spans if span.phase == "cold"]
    image = next(event for event in JOURNAL if isinstance(event, IterationDone))
    assert [span.end_boot_ns for span in cold] == [
        *(span.start_boot_ns for span in cold[1:]),
        image.start_boot_ns + image.duration_ns,
    ]


def test_samples_of_all_traces_come_in_order_with_what_is_missing() -> None:
    trace = trace_of(0, JOURNAL)
    assert len(trace.memory) == 6
    assert len(trace.environment) == 2
    assert trace.missing == {"battery_percent": "no battery", "external_power": "no battery"}


def test_the_stage_that_a_process_died_in_has_no_end() -> None:
    for events in (make_failed_journal(), until(Begin, 5)(JOURNAL)):
        assert trace_of(0, events).spans[-1].end_boot_ns is None


def test_a_stop_in_good_order_ends_what_was_going_on() -> None:
    events = [*until(Begin, 1)(JOURNAL), JOURNAL[-1]]
    assert isinstance(events[-1], Stop)
    assert trace_of(0, events).spans[0].end_boot_ns == events[-1].device_boot_ns
    failed = replace(events[-1], outcome="failed")
    assert trace_of(0, [*events[:-1], failed]).spans[0].end_boot_ns is None


def test_an_empty_journal_gives_an_empty_trace() -> None:
    trace = trace_of(0, ())
    assert (trace.spans, trace.memory, trace.environment, trace.missing) == ((), (), (), {})
