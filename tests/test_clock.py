"""The clock that tests move by hand, and the deadline on top of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.clock import Deadline, FakeClock, RealClock
from profiler.quantities import NS_PER_MS, NS_PER_S


def test_a_fake_clock_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(boot_ns=7, wall_ns=9)
    assert (clock.boot_ns(), clock.wall_ns(), clock.boot_ns()) == (7, 9, 7)


def test_sleeping_on_a_fake_clock_moves_both_clocks_at_once() -> None:
    clock = FakeClock(boot_ns=0, wall_ns=1000)
    clock.sleep(1.5)
    assert (clock.boot_ns(), clock.wall_ns()) == (1_500_000_000, 1_500_001_000)


def test_the_real_clock_never_goes_back() -> None:
    clock = RealClock()
    readings = [clock.boot_ns() for _ in range(100)]
    assert readings == sorted(readings)


def test_the_real_wall_clock_is_after_this_test_was_written() -> None:
    assert RealClock().wall_ns() > 1_750_000_000 * NS_PER_S


def test_a_deadline_counts_down_and_stays_at_zero() -> None:
    clock = FakeClock()
    deadline = Deadline(2.0, clock)
    clock.advance(500 * NS_PER_MS)
    assert deadline.left_s() == pytest.approx(1.5)
    clock.advance(10 * NS_PER_S)
    assert (deadline.left_s(), deadline.passed()) == (0.0, True)


def test_a_deadline_has_passed_at_its_very_moment() -> None:
    clock = FakeClock()
    deadline = Deadline(1.0, clock)
    clock.advance(NS_PER_S - 1)
    assert not deadline.passed()
    clock.advance(1)
    assert deadline.passed()


@given(st.floats(0, 1e6), st.lists(st.integers(0, 10**12), max_size=20))
def test_nested_calls_that_share_a_deadline_never_get_more_than_was_given(seconds: float, waits: list[int]) -> None:
    clock = FakeClock()
    deadline = Deadline(seconds, clock)
    left = [deadline.left_s()]
    for wait in waits:
        clock.advance(wait)
        left.append(deadline.left_s())
    assert left == sorted(left, reverse=True)
    assert left[0] == pytest.approx(seconds, abs=1e-9)
    assert deadline.passed() == (sum(waits) >= round(seconds * NS_PER_S))
