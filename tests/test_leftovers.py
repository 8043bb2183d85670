from __future__ import annotations

import pytest

from profiler.clock import RealClock
from profiler.collecting import process_folder
from profiler.devices.device import Away, Ended, Place
from profiler.leftovers import SetAside, Waiting, collect_abandoned
from profiler.records.event import IterationDone
from profiler.records.run import ProcessExit, Run
from profiler.store import SESSION_FILE, Store
from tests.messages_for_tests import make_journal
from tests.sessions_for_tests import (
    FakeDevice,
    add_process,
    make_launch,
    make_session,
    open_sessions,
    until,
    without_images,
)

GOOD = without_images(make_journal())


def test_an_abandoned_session_is_collected_and_its_runners_are_ended(store: Store) -> None:
    session = make_session(store)
    storage = add_process(session, make_launch(exit_code=None), until(IterationDone)(GOOD))
    session.release()
    device = FakeDevice()
    (run,) = collect_abandoned(store, lambda session: device, RealClock())
    assert isinstance(run, Run)
    assert (run.outcome, run.run_id) == ("interrupted", session.run_id)
    assert [place.folder for place in device.recovered] == [storage]
    assert open_sessions(store) == []


def test_an_abandoned_session_is_a_run_from_its_first_launch_on(store: Store) -> None:
    launched, not_yet = make_session(store), make_session(store)
    add_process(launched, make_launch(exit_code=None, pid=None), ())
    process_folder(not_yet.folder, 0).mkdir(parents=True)
    for session in (launched, not_yet):
        session.release()
    device = FakeDevice()
    (run,) = collect_abandoned(store, lambda session: device, RealClock())
    assert isinstance(run, Run)
    assert (run.run_id, run.outcome, run.stage) == (launched.run_id, "interrupted", "launch")
    assert len(device.recovered) == 2
    assert open_sessions(store) == []


def test_a_session_that_cannot_be_read_is_set_aside_and_does_not_stand_in_the_way(store: Store) -> None:
    broken, good = make_session(store), make_session(store)
    broken.write(SESSION_FILE, b"{")
    for session in (broken, good):
        add_process(session, make_launch(), GOOD)
        session.release()
    found = list(collect_abandoned(store, lambda session: FakeDevice(), RealClock()))
    assert {type(each) for each in found} == {SetAside, Run}
    aside = next(each for each in found if isinstance(each, SetAside))
    assert aside.folder == store.root / "set-aside" / broken.run_id
    assert SESSION_FILE in aside.reason
    assert store.run_ids() == [good.run_id]


def test_a_foreign_file_in_a_session_does_not_stand_in_the_way(store: Store) -> None:
    session = make_session(store)
    session.write("launch-x.json", b"{}")
    add_process(session, make_launch(), GOOD)
    session.release()
    assert [type(each) for each in collect_abandoned(store, lambda session: FakeDevice(), RealClock())] == [Run]


class Gone(FakeDevice):
    def recover(self, place: Place) -> Ended:
        raise Away("pixel9 is not connected", hint="Plug it in.")


class AtWork(FakeDevice):
    def is_at_work(self, place: Place) -> bool:
        return True


@pytest.mark.parametrize(("device", "reason"), [(Gone(), "not connected"), (AtWork(), "still at work")])
def test_a_session_whose_device_is_away_or_at_work_waits_for_it(store: Store, device: FakeDevice, reason: str) -> None:
    session = make_session(store)
    add_process(session, make_launch(exit_code=None), until(IterationDone)(GOOD))
    session.release()
    (waiting,) = collect_abandoned(store, lambda session: device, RealClock())
    assert isinstance(waiting, Waiting)
    assert waiting.session.run_id == session.run_id
    assert reason in waiting.reason
    assert device.recovered == []
    assert device.closed
    (run,) = collect_abandoned(store, lambda session: FakeDevice(), RealClock())
    assert isinstance(run, Run)


def test_one_waiting_session_does_not_keep_the_others_back(store: Store) -> None:
    sessions = [make_session(store), make_session(store)]
    for session in sessions:
        add_process(session, make_launch(), GOOD)
        session.release()
    devices = {sessions[0].run_id: Gone(), sessions[1].run_id: FakeDevice()}
    found = list(collect_abandoned(store, lambda session: devices[session.run_id], RealClock()))
    assert {type(each) for each in found} == {Waiting, Run}
    assert store.run_ids() == [sessions[1].run_id]


def test_what_is_safe_in_the_store_is_removed_from_the_device(store: Store) -> None:
    session = make_session(store)
    add_process(session, make_launch(), GOOD)
    session.release()
    device = FakeDevice()
    list(collect_abandoned(store, lambda session: device, RealClock()))
    assert device.cleaned == [session.run_id]


def test_a_runner_that_is_still_at_work_can_be_stopped_instead(store: Store) -> None:
    session = make_session(store)
    storage = add_process(session, make_launch(exit_code=None), until(IterationDone)(GOOD))
    session.release()
    device = AtWork()
    (run,) = collect_abandoned(store, lambda session: device, RealClock(), at_work="stop")
    assert isinstance(run, Run)
    assert run.outcome == "interrupted"
    assert [place.folder for place in device.recovered] == [storage]


def test_how_a_runner_ended_while_nobody_looked_is_found_out_afterwards(store: Store) -> None:
    session = make_session(store)
    add_process(session, make_launch(exit_code=None), until(IterationDone)(GOOD))
    session.release()
    device = FakeDevice()
    device.found_exit = ProcessExit(
        kind="low_memory", detail="the phone ran out", signal=9, resident_bytes=4_000_000_000, evidence="lmkd"
    )
    (run,) = collect_abandoned(store, lambda session: device, RealClock())
    assert isinstance(run, Run)
    assert (run.outcome, run.reason) == ("failed", "out_of_memory: the phone ran out")
