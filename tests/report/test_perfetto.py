from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from profiler.report.perfetto import perfetto
from tests.report.entries_for_tests import HOSTILE, edit_run, entry_of, failed_run, hostile_run, make_trace
from tests.runs_for_tests import make_samples

Event = dict[str, Any]


@pytest.fixture
def events(tmp_path: Path) -> list[Event]:
    run = edit_run()
    return read(perfetto([entry_of(run, tmp_path, (make_trace(),))]))


def read(data: bytes) -> list[Event]:
    found: list[Event] = json.loads(data)["traceEvents"]
    return found


def of(events: list[Event], phase: str) -> list[Event]:
    return [event for event in events if event["ph"] == phase]


def test_every_event_has_what_the_format_asks_for(events: list[Event]) -> None:
    for event in events:
        assert event["ph"] in ("M", "X", "C")
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["args"], dict)
        assert event["ph"] == "M" or event["ts"] >= 0
        assert event["ph"] != "X" or event["dur"] >= 0
        assert event["ph"] != "C" or all(isinstance(value, int | float) for value in event["args"].values())


def test_times_are_microseconds_from_the_first_event(events: list[Event]) -> None:
    assert min(event["ts"] for event in events if event["ph"] != "M") == 0
    assert {event["dur"] for event in of(events, "X") if event["name"] == "cold image 0"} == {900_000}


def test_loads_images_and_stages_are_slices_with_phase_and_iteration(events: list[Event]) -> None:
    names = {event["name"] for event in of(events, "X")}
    assert {"load denoiser", "denoise", "timed image 2"} <= names
    (cold,) = [event for event in of(events, "X") if event["name"] == "denoise" and event["cat"] == "cold"]
    assert cold["args"] == {"phase": "cold", "iteration": 0, "component": "denoiser"}


def test_gauges_are_counters_with_their_unit(events: list[Event]) -> None:
    units = {event["name"]: set(event["args"]) for event in of(events, "C")}
    assert units["resident memory"] == {"MiB"}
    assert units["temperature"] == {"°C"}
    assert units["processor clock"] == {"MHz"}
    assert units["canary"] == {"ms"}
    assert "battery" not in units


def test_processes_and_tracks_have_names_and_no_track_is_a_main_thread(events: list[Event]) -> None:
    assert {event["args"].get("name") for event in of(events, "M")} >= {"loads", "images and stages"}
    assert not [event for event in of(events, "X") if event["tid"] == event["pid"]]


def test_slices_of_a_track_lie_in_or_behind_one_another(tmp_path: Path) -> None:
    run = replace(edit_run(), iterations=make_samples())
    slices = of(read(perfetto([entry_of(run, tmp_path)])), "X")
    spans = sorted((event["ts"], -event["dur"]) for event in slices)
    for (start, length), (after, _) in itertools.pairwise(spans):
        assert after >= start - length or after >= start


def test_each_run_has_processes_of_its_own_and_starts_at_zero(tmp_path: Path) -> None:
    entry = entry_of(edit_run(), tmp_path, (make_trace(),))
    events = read(perfetto([entry, entry]))
    pids = {event["pid"] for event in events}
    assert len(pids) == 2
    for pid in pids:
        assert min(event["ts"] for event in events if event["pid"] == pid and "ts" in event) == 0


def test_a_stage_that_a_process_died_in_goes_on_to_its_last_reading(tmp_path: Path) -> None:
    trace = make_trace()
    dead = replace(trace, spans=(replace(trace.spans[0], end_boot_ns=None),), environment=())
    events = read(perfetto([entry_of(failed_run(), tmp_path, (dead,))]))
    (load,) = of(events, "X")
    assert load["dur"] == 29 * 20_000


def test_words_of_others_are_json(tmp_path: Path) -> None:
    events = read(perfetto([entry_of(hostile_run(), tmp_path)]))
    assert any(HOSTILE[:8] in event["args"].get("name", "") for event in of(events, "M"))
