"""When the next timed image may begin, by the protocol of measurement."""

from __future__ import annotations

from collections.abc import Iterator

from profiler.clock import Clock, Deadline
from profiler.records.job import Measurement
from profiler.runner.patience import NotReady, Patience
from profiler.runner.readiness import Readiness

READY_TIMEOUT_S = 600.0
_LEAST_GAP_S = 0.5  # to see what else is running
_LEAST_LOOK_S = 2.0


class Repetitions:
    """Numbers the timed images and waits between them."""

    def __init__(
        self,
        measurement: Measurement,
        repeats: int,
        clock: Clock,
        readiness: Readiness,
        patience: Patience,
    ) -> None:
        self._measurement = measurement
        self._repeats = repeats
        self._clock = clock
        self._readiness = readiness
        self._patience = patience

    def __iter__(self) -> Iterator[int]:
        """Yield each image's number once it may begin. Raises NotReady, and what its patience raises."""
        if self._measurement.kind == "sustained":
            yield from self._for_minutes(self._measurement.minutes or 0)
            return
        for number in range(self._repeats):
            if self._measurement.kind == "spaced":
                self._wait_until_ready(self._measurement.gap_s or 0)
            yield number

    def _for_minutes(self, minutes: float) -> Iterator[int]:
        deadline = Deadline(minutes * 60, self._clock)
        number = 0
        while not deadline.passed():
            yield number
            number += 1

    def _wait_until_ready(self, gap_s: float) -> None:
        """Wait for the gap, and longer until the machine is ready or the time is up."""
        limit = Deadline(gap_s + READY_TIMEOUT_S, self._clock)
        self._readiness.begin()
        pause_s = max(gap_s, _LEAST_GAP_S)
        self._patience.wait(pause_s, f"a pause of {pause_s:g} s")
        while (lack := self._readiness.lack()) is not None:
            if limit.passed():
                raise NotReady(f"not_ready: {lack}, after {READY_TIMEOUT_S:.0f} s of waiting")
            self._patience.wait(_LEAST_LOOK_S, lack)
