"""The connection is cut, spoilt, or never comes back, through a real proxy between host and runner."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.clock import RealClock
from profiler.journal import read_journal
from profiler.records.event import AnyEvent
from profiler.session import Progress, measure
from profiler.store import Store
from tests.faults.faulty_runner import Fault
from tests.faults.hosts import Desk, Faulty, check_nothing_left
from tests.small_bundle import make_order


@pytest.mark.parametrize("seed", range(4))
def test_a_connection_cut_again_and_again_loses_no_event_and_doubles_none(
    slow_bundle: Path, store: Store, seed: int
) -> None:
    heard: list[AnyEvent] = []

    def listen(state: Progress) -> None:
        if state.event is not None:
            heard.append(state.event)

    device = Faulty(Fault("cut", amount=seed))("local", RealClock())
    run = measure(make_order(slow_bundle, repeats=6), device, store, RealClock(), listen)
    assert (run.outcome, len(run.iterations)) == ("completed", 7)
    assert heard == list(read_journal(store.folder(run.run_id) / run.processes[0].journal))
    check_nothing_left(store.root)


def test_a_connection_that_is_cut_and_cannot_be_kept_open_ends_with_the_runner(
    slow_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(slow_bundle, tmp_path / "store", capsys)
    told = desk.measure(Fault("cut for ever"), "--repeats", "100000", away_s=0.3)
    run = desk.only_run()
    assert (told.code, run.outcome) == (3, "aborted")
    assert "closed the connection" in (run.reason or "") or "broke" in (run.reason or "")
    assert len(run.iterations) > 0
    desk.check_shown(run)


@pytest.mark.parametrize("what", ["cut at once", "cut before the job"])
def test_a_connection_cut_before_the_job_is_a_launch_that_failed(desk: Desk, what: str) -> None:
    told = desk.measure(Fault(what))
    run = desk.only_run()
    assert (told.code, run.outcome, run.stage) == (3, "aborted", "launch")
    assert "closed the connection" in (run.reason or "") or "broke" in (run.reason or "")
    desk.check_shown(run)


def test_garbage_among_the_events_aborts_the_run_and_keeps_its_images(
    slow_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(slow_bundle, tmp_path / "store", capsys)
    told = desk.measure(Fault("spoilt"), "--repeats", "100000")
    run = desk.only_run()
    assert (told.code, run.outcome) == (3, "aborted")
    assert "the runner: not a valid" in (run.reason or "")
    assert len(run.iterations) > 0
    desk.check_shown(run)
