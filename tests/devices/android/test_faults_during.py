"""What happens to a phone while it is measured: nothing that it measured is lost, and what is said is so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profiler.cli.measuring import exit_code
from profiler.clock import RealClock
from profiler.records.event import IterationDone, LoadDone
from profiler.records.job import OnDisconnect
from profiler.session import Order, Progress, measure
from tests.devices.android.faults_for_tests import at_event, check_whole, once, sessions
from tests.devices.android.phones_for_tests import Desk
from tests.phones.android.phone import VirtualAndroid
from tests.small_bundle import make_order


@pytest.fixture
def pixel() -> Iterator[VirtualAndroid]:
    with VirtualAndroid("pixel9", runner="python") as phone:
        yield phone


@pytest.fixture
def order(small_bundle: Path) -> Order:
    """Long enough for something to happen meanwhile: there is a rest after the cold image."""
    return make_order(small_bundle, repeats=3, rest_s=1.5)


def when(so: Callable[[], bool], action: Callable[[], None]) -> None:
    """Do something from outside, as a hand does, once it is so."""

    def wait() -> None:
        while not so():
            time.sleep(0.02)
        action()

    threading.Thread(target=wait, daemon=True).start()


def test_a_cable_that_is_out_for_a_while_costs_nothing(desk: Desk, pixel: VirtualAndroid, order: Order) -> None:
    pull = at_event(IterationDone, pixel.unplug)
    plug = once(lambda state: state.phase == "away", pixel.plug)
    seen: list[str] = []

    def report(state: Progress) -> None:
        seen.append(state.phase)
        pull(state)
        plug(state)

    run = desk.measure(pixel, order, report)
    assert (run.outcome, run.reason) == ("completed", None)
    assert len(run.iterations) == 4
    assert seen[seen.index("away") :].count("run") > 3  # it was followed again
    check_whole(desk.store, run.run_id)
    assert sessions(desk.store) == []


def test_a_run_that_ends_while_the_cable_is_out_is_collected_by_the_same_command(
    desk: Desk, pixel: VirtualAndroid, order: Order
) -> None:
    def pull() -> None:
        pixel.unplug()
        when(lambda: not pixel.apps.running(), pixel.plug)

    with desk.device(pixel) as device:
        device.on_disconnect = OnDisconnect(kind="finish_then_exit", seconds=0.1)  # then nobody is waited for
        two = order._replace(cold_starts=2)
        run = measure(two, device, desk.store, RealClock(), at_event(IterationDone, pull))
    assert (run.outcome, run.reason) == ("completed", None)
    assert [sample.phase for sample in run.iterations] == ["cold", "cold", "timed", "timed", "timed"]
    check_whole(desk.store, run.run_id)
    assert sessions(desk.store) == []


@pytest.mark.parametrize("persona", ["pixel9", "old-api29"])
def test_a_loose_contact_is_got_over(desk: Desk, order: Order, persona: str) -> None:
    with VirtualAndroid(persona, runner="python") as phone:
        for_each = [phone.drop_connections] * 3

        def drop(state: object) -> None:
            if isinstance(getattr(state, "event", None), (LoadDone, IterationDone)) and for_each:
                for_each.pop()()

        run = desk.measure(phone, order, drop)
    assert (run.outcome, run.reason, len(run.iterations)) == ("completed", None, 4)
    check_whole(desk.store, run.run_id)


def test_a_restart_is_told_as_one_and_what_was_measured_is_kept(
    desk: Desk, pixel: VirtualAndroid, order: Order
) -> None:
    run = desk.measure(pixel, order, at_event(IterationDone, pixel.reboot))
    assert run.outcome == "aborted"
    assert exit_code(run) == 3
    assert "the phone was restarted" in (run.reason or "")
    assert run.processes[0].exit is not None
    assert run.processes[0].exit.kind == "restarted"
    assert len(run.iterations) == 1
    assert sessions(desk.store) == []
    check_whole(desk.store, run.run_id)


APP_ENDS = {
    "native crash": ("crash", "failed", "runner_died", "native_crash"),
    "killed from nowhere": ("kill", "failed", "runner_died", "signalled"),
    "ANR": ("anr", "failed", "runner_died", "not_responding"),
    "stopped by somebody": ("force-stop", "aborted", "runner_stopped", "stopped"),
}


@pytest.mark.parametrize(("why", "outcome", "word", "kind"), APP_ENDS.values(), ids=APP_ENDS)
def test_an_app_that_ends_says_why_in_the_phones_own_words(
    desk: Desk, pixel: VirtualAndroid, order: Order, why: str, outcome: str, word: str, kind: str
) -> None:
    run = desk.measure(pixel, order, at_event(IterationDone, lambda: pixel.kill_app(why)))
    (process,) = run.processes
    assert (run.outcome, process.outcome, exit_code(run)) == (outcome, outcome, {"failed": 1, "aborted": 3}[outcome])
    assert (run.reason or "").startswith(f"{word}: ")
    assert process.exit is not None
    assert process.exit.kind == kind
    assert process.exit.evidence
    assert len(run.iterations) == 1
    assert sessions(desk.store) == []
    check_whole(desk.store, run.run_id)


def test_an_app_that_hangs_is_given_up_after_the_time_that_is_allowed(
    desk: Desk, pixel: VirtualAndroid, order: Order
) -> None:
    run = desk.measure(pixel, order._replace(stall_timeout_s=1.5), at_event(IterationDone, pixel.freeze_app))
    assert run.outcome == "failed"
    assert exit_code(run) == 1
    assert run.reason == "timed_out: no progress for 1.5 s, the limit that --timeout sets"
    assert len(run.iterations) == 1
    assert pixel.apps.running() == {}
    assert sessions(desk.store) == []
