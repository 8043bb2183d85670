"""A small workload of the runner's own: when it slows down the processor did, whatever the model does."""

from __future__ import annotations

import hashlib

from profiler.clock import Clock

# 256 KiB stay in a core's own cache; SHA-256 takes a number of cycles that depends on nothing else.
_DATA = bytes(256 * 1024)
COOL_ROUNDS = 100
BETWEEN_ROUNDS = 5


class Canary:
    """Hashes the same bytes a few times and keeps the fastest: an interruption only lengthens single rounds.

    After the thermal throttle detector of AndroidX Benchmark, which compares such a workload with its own first time.
    """

    def __init__(self, clock: Clock) -> None:
        self._now = clock.boot_ns

    def run(self, rounds: int) -> int:
        """Return the fastest round's time in ns."""
        return min(self._round() for _ in range(rounds))

    def _round(self) -> int:
        start_ns = self._now()
        hashlib.sha256(_DATA)
        return self._now() - start_ns
