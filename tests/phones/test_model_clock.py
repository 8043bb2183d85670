"""Model time: free-running or driven, and actions in the order of their moments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profiler.clock import FakeClock
from tests.phones.model_clock import ModelClock, Schedule


def test_free_running_time_goes_with_the_clock_times_its_speed() -> None:
    clock = FakeClock(boot_ns=77)
    time = ModelClock(clock, speed=20.0, start_ns=1000)
    clock.advance(5)
    assert time.due_ns(1000) == 1100


def test_driven_time_stands_still_and_goes_on_from_there_when_it_runs_free_again() -> None:
    clock = FakeClock()
    time = ModelClock(clock, speed=2.0, start_ns=0)
    time.drive()
    clock.advance(1_000)
    assert time.due_ns(50) == 50
    time.run_free(70)
    clock.advance(10)
    assert time.due_ns(70) == 90


def test_time_never_goes_back_even_if_the_model_is_ahead_of_the_clock() -> None:
    time = ModelClock(FakeClock(), speed=1.0, start_ns=0)
    assert time.due_ns(500) == 500


def test_an_action_is_taken_once_and_not_before_its_moment() -> None:
    schedule = Schedule()
    schedule.add(10, lambda: None)
    assert schedule.take_until(9) is None
    assert schedule.next_ns() == 10
    assert schedule.take_until(10) is not None
    assert schedule.take_until(10**9) is None


@given(st.lists(st.integers(0, 20), max_size=40))
def test_actions_come_in_the_order_of_their_moments_and_of_the_asking(moments: list[int]) -> None:
    schedule = Schedule()
    came: list[tuple[int, int]] = []
    for number, moment in enumerate(moments):
        schedule.add(moment, lambda key=(moment, number): came.append(key))
    for now in range(21):
        while (action := schedule.take_until(now)) is not None:
            action()
            assert came[-1][0] <= now
    assert came == sorted((moment, number) for number, moment in enumerate(moments))
