from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from profiler.clock import FakeClock
from profiler.quantities import NS_PER_S
from profiler.records.job import Measurement
from profiler.runner.interpreter import Cancelled
from profiler.runner.patience import NotReady, Patience
from profiler.runner.readiness import Readiness
from profiler.runner.repetitions import READY_TIMEOUT_S, Repetitions


def repetitions(
    clock: FakeClock,
    measurement: Measurement,
    *,
    repeats: int = 3,
    others: Callable[[], float] = lambda: 0.0,
    check: Callable[[], None] = lambda: None,
    waiting: Callable[[str], object] = lambda reason: None,
) -> Repetitions:
    readiness = Readiness(lambda: None, others, lambda: 1, cool_canary_ns=1, cores=1)
    return Repetitions(measurement, repeats, clock, readiness, Patience(clock, check, waiting))


def test_a_burst_waits_for_nothing() -> None:
    clock = FakeClock()
    assert list(repetitions(clock, Measurement(kind="burst"))) == [0, 1, 2]
    assert clock.boot_ns() == 0


def test_spaced_images_wait_for_the_gap_and_then_for_the_machine() -> None:
    clock = FakeClock()
    busy = itertools.chain([0.0, 99.0, 99.0], itertools.repeat(0.0))
    numbers = iter(repetitions(clock, Measurement(kind="spaced", gap_s=2.0), others=lambda: next(busy)))
    assert next(numbers) == 0
    assert clock.boot_ns() == 6 * NS_PER_S  # the gap, and two seconds twice
    assert next(numbers) == 1
    assert clock.boot_ns() == 8 * NS_PER_S


def test_whoever_listens_hears_why_there_is_a_wait_and_that_it_goes_on() -> None:
    heard: list[str] = []
    busy = itertools.chain([0.0, 99.0], itertools.repeat(0.0))
    spaced = Measurement(kind="spaced", gap_s=12.0)
    list(repetitions(FakeClock(), spaced, repeats=1, others=lambda: next(busy), waiting=heard.append))
    assert heard == ["a pause of 12 s"] * 3 + ["other work uses 1.0 of 1 cores"]


def test_even_without_a_gap_there_is_time_to_see_what_else_runs() -> None:
    clock = FakeClock()
    next(iter(repetitions(clock, Measurement(kind="spaced", gap_s=0.0))))
    assert clock.boot_ns() == NS_PER_S // 2


def test_a_gate_that_never_opens_ends_the_job_and_says_why() -> None:
    clock = FakeClock()
    with pytest.raises(NotReady, match=r"not_ready: other work uses 0.9 of 1 cores, after 600 s"):
        list(repetitions(clock, Measurement(kind="spaced", gap_s=5.0), others=lambda: 90.0))
    assert clock.boot_ns() >= (5 + READY_TIMEOUT_S) * NS_PER_S


def test_a_cancelled_job_does_not_wait_for_its_gap() -> None:
    def check() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        list(repetitions(FakeClock(), Measurement(kind="spaced", gap_s=3600.0), check=check))


def test_sustained_goes_on_for_its_minutes_whatever_repeats_says() -> None:
    clock = FakeClock()
    count = 0
    for _ in repetitions(clock, Measurement(kind="sustained", minutes=0.5), repeats=1):
        clock.advance(NS_PER_S)
        count += 1
    assert count == 30
