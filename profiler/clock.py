"""Clocks: the real one, one that a test moves by hand, and a deadline that nested calls share."""

from __future__ import annotations

import time
from typing import Protocol

from profiler.quantities import NS_PER_S

# CLOCK_BOOTTIME keeps counting in sleep (Linux, Android); macOS's monotonic clock is the nearest elsewhere.
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """What measuring code needs from time."""

    def boot_ns(self) -> int:
        """Return nanoseconds since boot, sleep included."""

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970-01-01 UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class RealClock:
    """The operating system's clocks."""

    def boot_ns(self) -> int:
        """Return nanoseconds since boot, sleep included."""
        return time.clock_gettime_ns(_BOOT_CLOCK)

    def wall_ns(self) -> int:
        """Return nanoseconds since 1970-01-01 UTC."""
        return time.time_ns()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


class FakeClock:
    """A clock that moves only when it is told to, or slept on."""

    def __init__(self, *, boot_ns: int = 0, wall_ns: int = 1_700_000_000 * NS_PER_S) -> None:
        self._boot_ns = boot_ns
        self._wall_ns = wall_ns

    def boot_ns(self) -> int:
        """Return the simulated time since boot."""
        return self._boot_ns

    def wall_ns(self) -> int:
        """Return the simulated time of day."""
        return self._wall_ns

    def sleep(self, seconds: float) -> None:
        """Move on by that much at once."""
        self.advance(round(seconds * NS_PER_S))

    def set_wall(self, wall_ns: int) -> None:
        """Set the time of day, as a time server or a user does; the other clock goes on."""
        self._wall_ns = wall_ns

    def advance(self, duration_ns: int) -> None:
        """Move both clocks on."""
        self._boot_ns += duration_ns
        self._wall_ns += duration_ns


class Deadline:
    """A moment after which nested calls give up; they share it instead of adding time-outs up."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._clock = clock
        self._end_ns = clock.boot_ns() + round(seconds * NS_PER_S)

    def left_s(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, (self._end_ns - self._clock.boot_ns()) / NS_PER_S)

    def passed(self) -> bool:
        """Tell whether no time is left."""
        return self.left_s() == 0.0
