"""Waiting on purpose: with signs of life, and an end where the host asks for one."""

from __future__ import annotations

from collections.abc import Callable

from profiler.clock import Clock, Deadline

SIGN_OF_LIFE_S = 5.0
UNPLUG_TIMEOUT_S = 600.0
UNPLUG = "unplug the device: the timed images are to run on its battery"
_LOOK_S = 1.0


class NotReady(Exception):
    """What was waited for did not come before its deadline."""


class Patience:
    """Waits: `check` raises where the job is to stop, `waiting` hears why, and again every few seconds."""

    def __init__(self, clock: Clock, check: Callable[[], None], waiting: Callable[[str], object]) -> None:
        self.clock = clock
        self._check = check
        self._waiting = waiting

    def wait(self, seconds: float, reason: str) -> None:
        """Wait for so long. Raises what `check` raises."""
        deadline, silence = Deadline(seconds, self.clock), Deadline(0, self.clock)
        while not deadline.passed():
            self._check()
            if silence.passed():
                self._waiting(reason)
                silence = Deadline(SIGN_OF_LIFE_S, self.clock)
            self.clock.sleep(min(0.05, max(deadline.left_s(), 0.001)))


def wait_untethered(patience: Patience, external_power: Callable[[], bool | None]) -> None:
    """Wait until the device runs on its battery. Raises NotReady, at once where it cannot tell."""
    limit = Deadline(UNPLUG_TIMEOUT_S, patience.clock)
    while (plugged := external_power()) is not False:
        if plugged is None:
            raise NotReady("not_ready: the device does not tell whether it is on external power")
        if limit.passed():
            raise NotReady(f"not_ready: still on external power after {UNPLUG_TIMEOUT_S:.0f} s of waiting")
        patience.wait(_LOOK_S, UNPLUG)
