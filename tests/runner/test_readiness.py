"""The gate before spaced images: each thing that may hold it, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from profiler.runner.readiness import Readiness

CORES = 4
COOL_NS = 200_000


def gate(
    *, temperatures: list[int | None] | None = None, others: float | None = 0.0, canary_ns: int = COOL_NS
) -> Readiness:
    """Return a gate whose thermometer tells `temperatures` one after another, the first at the start."""
    readings: Iterator[int | None] = iter(temperatures or [None] * 9)
    return Readiness(lambda: next(readings), lambda: others, lambda: canary_ns, cool_canary_ns=COOL_NS, cores=CORES)


def test_a_machine_as_at_the_start_is_ready() -> None:
    assert gate(temperatures=[40_000, 43_000], others=120.0, canary_ns=220_000).lack() is None


def test_what_cannot_be_read_holds_nothing_up() -> None:
    assert gate(temperatures=[None, 90_000], others=None).lack() is None
    assert gate(temperatures=[40_000, None]).lack() is None


@pytest.mark.parametrize(
    ("ready", "told"),
    [
        (gate(temperatures=[40_000, 43_500]), "still at 43.5 °C, 3.5 °C above the start"),
        (gate(others=130.0), "other work uses 1.3 of 4 cores"),
        (gate(canary_ns=230_000), "the processor is 15 % slower than when the job began"),
    ],
)
def test_heat_other_work_and_a_slow_processor_each_hold_it_and_say_so(ready: Readiness, told: str) -> None:
    assert ready.lack() == told


def test_a_clock_too_coarse_for_the_canary_holds_nothing_up() -> None:
    readiness = Readiness(lambda: None, lambda: 0.0, lambda: 5, cool_canary_ns=0, cores=1)
    assert readiness.lack() is None
