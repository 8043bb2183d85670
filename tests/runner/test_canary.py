from __future__ import annotations

from profiler.clock import FakeClock, RealClock
from profiler.runner.canary import BETWEEN_ROUNDS, Canary


class SlowingClock(FakeClock):
    """Each look at it takes longer than the one before."""

    def __init__(self) -> None:
        super().__init__()
        self._step_ns = 0

    def boot_ns(self) -> int:
        self._step_ns += 1000
        self.advance(self._step_ns)
        return super().boot_ns()


def test_the_fastest_round_counts_so_that_an_interruption_does_not() -> None:
    assert Canary(SlowingClock()).run(5) == 2000


def test_a_real_round_takes_time_and_little_of_it() -> None:
    assert 0 < Canary(RealClock()).run(BETWEEN_ROUNDS) < 1_000_000_000
