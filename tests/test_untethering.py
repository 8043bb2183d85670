from __future__ import annotations

from msgspec.structs import replace

from profiler.clock import FakeClock
from profiler.quantities import NS_PER_S
from profiler.records.event import IterationDone, Waiting
from profiler.records.job import Measurement
from profiler.runner.patience import UNPLUG
from profiler.untethering import Untethering
from tests.messages_for_tests import make_journal
from tests.records_for_tests import make_job


class Switch:
    def __init__(self) -> None:
        self.is_off = False
        self.turns: list[str] = []

    def off(self) -> None:
        self.is_off = True
        self.turns.append("off")

    def on(self) -> None:
        if self.is_off:
            self.is_off = False
            self.turns.append("on")


WAITS = replace(next(event for event in make_journal() if isinstance(event, Waiting)), reason=UNPLUG)
IMAGE = next(event for event in make_journal() if isinstance(event, IterationDone))


def job(**fields: object):  # type: ignore[no-untyped-def]
    return replace(make_job(), untethered=True, **fields)


def test_power_goes_when_the_runner_waits_for_it_and_comes_back_when_it_must_be_done() -> None:
    clock, switch = FakeClock(), Switch()
    untethering = Untethering(job(repeats=10, rest_s=60.0), switch, clock)
    untethering.take(replace(IMAGE, duration_ns=20 * NS_PER_S))
    untethering.take(WAITS)
    untethering.take(WAITS)
    assert switch.turns == ["off"]
    clock.sleep(60 + 10 * 20)
    untethering.take(None)
    assert switch.turns == ["off"]
    clock.sleep(0.3 * 10 * 20 + 1)
    untethering.take(None)
    assert switch.turns == ["off", "on"]


def test_a_sustained_run_is_away_for_its_minutes() -> None:
    measurement = Measurement(kind="sustained", minutes=10.0)
    untethering = Untethering(job(measurement=measurement, rest_s=60.0), Switch(), FakeClock())
    assert 660 < untethering.away_s() < 900


def test_power_comes_back_however_the_session_ends() -> None:
    switch = Switch()
    untethering = Untethering(job(), switch, FakeClock())
    untethering.take(WAITS)
    untethering.end()
    assert switch.turns == ["off", "on"]


def test_a_job_that_is_not_untethered_switches_nothing() -> None:
    switch = Switch()
    untethering = Untethering(make_job(), switch, FakeClock())
    untethering.take(WAITS)
    untethering.end()
    assert switch.turns == []
