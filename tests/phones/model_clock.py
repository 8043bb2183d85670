"""Model time: free-running with the host's clock, or driven by one synthetic runner; and actions at moments of it."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from profiler.clock import Clock

Action = Callable[[], object]


class ModelClock:
    """Tell where model time should be; it never goes backwards and knows nothing of the phone's boots."""

    def __init__(self, clock: Clock, *, speed: float, start_ns: int) -> None:
        self._clock = clock
        self._speed = speed
        self._driven = False
        self._anchor_model_ns = start_ns
        self._anchor_real_ns = clock.boot_ns()

    @property
    def driven(self) -> bool:
        """Tell whether time moves only when a runner advances it."""
        return self._driven

    def due_ns(self, now_ns: int) -> int:
        """Return where a free-running model should be; a driven one stays at `now_ns`."""
        if self._driven:
            return now_ns
        gone_ns = round((self._clock.boot_ns() - self._anchor_real_ns) * self._speed)
        return max(now_ns, self._anchor_model_ns + gone_ns)

    def drive(self) -> None:
        """Let time move only by advancing from now on."""
        self._driven = True

    def run_free(self, now_ns: int) -> None:
        """Let time run with the host's clock again, on from `now_ns`."""
        self._driven = False
        self._anchor_model_ns = now_ns
        self._anchor_real_ns = self._clock.boot_ns()


class Schedule:
    """Actions in the order of their moments; those of one moment in the order in which they were asked for."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, Action]] = []
        self._numbers = itertools.count()

    def add(self, moment_ns: int, action: Action) -> None:
        """Remember an action."""
        heapq.heappush(self._waiting, (moment_ns, next(self._numbers), action))

    def next_ns(self) -> int | None:
        """Return the moment of the next action."""
        return self._waiting[0][0] if self._waiting else None

    def take_until(self, moment_ns: int) -> Action | None:
        """Take the next action that is due by `moment_ns`."""
        if not self._waiting or self._waiting[0][0] > moment_ns:
            return None
        return heapq.heappop(self._waiting)[2]
