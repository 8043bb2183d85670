"""Two threads that read gauges while a job runs, and can be paused to measure what they cost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

S = TypeVar("S")


class Sampler(Generic[S]):
    """Calls `read` every `interval_s` on a thread of its own; samples wait until they are taken."""

    def __init__(self, read: Callable[[], S | None], interval_s: float) -> None:
        self._read = read
        self._interval_s = interval_s
        self._samples: list[S] = []
        self._running = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Sample from now on."""
        self._running.set()

    def pause(self) -> None:
        """Sample no more until resumed."""
        self._running.clear()

    def take(self) -> tuple[S, ...]:
        """Hand over what has gathered."""
        taken, self._samples = self._samples, []
        return tuple(taken)

    def end(self) -> None:
        """Stop the thread for good."""
        self._ended.set()
        self._running.set()
        self._thread.join(timeout=2 * self._interval_s + 1)

    def _loop(self) -> None:
        while not self._ended.is_set():
            self._running.wait()
            sample = self._read()
            if sample is not None:
                self._samples.append(sample)
            self._ended.wait(self._interval_s)
