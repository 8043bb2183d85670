from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from profiler.clock import FakeClock
from profiler.quantities import NS_PER_S
from profiler.runner.patience import SIGN_OF_LIFE_S, UNPLUG_TIMEOUT_S, NotReady, Patience, wait_untethered


def patience(clock: FakeClock, heard: list[str], check: Callable[[], None] = lambda: None) -> Patience:
    return Patience(clock, check, heard.append)


def test_a_wait_takes_as_long_as_it_says_and_shows_that_it_lives() -> None:
    clock, heard = FakeClock(), list[str]()
    patience(clock, heard).wait(4 * SIGN_OF_LIFE_S, "a pause")
    assert clock.boot_ns() == pytest.approx(4 * SIGN_OF_LIFE_S * NS_PER_S, rel=1e-3)
    assert heard == ["a pause"] * 4


def test_a_wait_ends_where_the_job_is_to_stop() -> None:
    class Stop(Exception):
        pass

    def check() -> None:
        raise Stop

    with pytest.raises(Stop):
        patience(FakeClock(), [], check).wait(1.0, "a pause")


def readings(*told: bool | None) -> Callable[[], bool | None]:
    left: Iterator[bool | None] = iter(told)
    return lambda: next(left)


def test_an_untethered_job_begins_once_the_cable_is_pulled() -> None:
    clock, heard = FakeClock(), list[str]()
    wait_untethered(patience(clock, heard), readings(True, True, False))
    assert clock.boot_ns() == pytest.approx(2 * NS_PER_S, rel=0.05)
    assert set(heard) == {"unplug the device: the timed images are to run on its battery"}


def test_a_cable_that_nobody_pulls_is_not_waited_for_for_ever() -> None:
    clock = FakeClock()
    with pytest.raises(NotReady, match="still on external power after 600 s"):
        wait_untethered(patience(clock, []), lambda: True)
    assert clock.boot_ns() >= UNPLUG_TIMEOUT_S * NS_PER_S


def test_a_device_that_cannot_tell_its_supply_is_not_waited_for_at_all() -> None:
    clock = FakeClock()
    with pytest.raises(NotReady, match="does not tell"):
        wait_untethered(patience(clock, []), lambda: None)
    assert clock.boot_ns() == 0
