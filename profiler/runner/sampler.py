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
        self._ended = threading.Lock()  # held until the end: waiting for a lock costs less a wake-up than for an event
        self._ended.acquire()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def resume(self) -> None:
        """Sample from now on."""
        self._running.set()

    def pause(self) -> None:
        """Sample no more until resumed."""
        self._running.clear()

    def look(self) -> None:
        """Read once now, on the caller's thread: where something begins or ends."""
        sample = self._read()
        if sample is not None:
            self._samples.append(sample)

    def take(self) -> tuple[S, ...]:
        """Hand over what has gathered."""
        taken = tuple(self._samples)
        del self._samples[: len(taken)]  # one that came meanwhile stays
        return taken

    def end(self) -> None:
        """Stop the thread for good."""
        if self._ended.locked():
            self._ended.release()
        self._running.set()
        self._thread.join(timeout=2 * self._interval_s + 1)

    def _loop(self) -> None:
        ended = False
        while not ended:
            if not self._running.is_set():
                self._running.wait()
            sample = self._read()
            if sample is not None:
                self._samples.append(sample)
            ended = self._ended.acquire(timeout=self._interval_s)
