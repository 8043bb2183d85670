"""What is read beside the work: memory and the slow gauges, on threads of their own, as trace events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from profiler.clock import Clock
from profiler.journal import Journal
from profiler.records.event import Trace
from profiler.records.job import Sampling
from profiler.runner.gauges import EnvironmentGauge, MemoryGauge
from profiler.runner.sampler import Sampler

_SAMPLES_PER_EVENT = 4000  # keeps a line well below the protocol's 1 MiB

T = TypeVar("T")


class Tracer:
    """Samples both gauges while it is not paused; what has gathered goes into the journal between iterations."""

    def __init__(self, journal: Journal, sampling: Sampling, clock: Clock) -> None:
        self._journal = journal
        self.memory = MemoryGauge(clock)
        self.environment = EnvironmentGauge(clock)
        self._memory_sampler = Sampler(self.memory.sample, sampling.memory_interval_ms / 1000)
        self._environment_sampler = Sampler(self.environment.sample, sampling.environment_interval_ms / 1000)

    def resume(self) -> None:
        """Sample from now on."""
        self._memory_sampler.resume()
        self._environment_sampler.resume()

    def pause(self) -> None:
        """Sample no more until resumed."""
        self._memory_sampler.pause()
        self._environment_sampler.pause()

    def look(self) -> None:
        """Read the slow gauges once now, so that a short phase has readings of its own."""
        self._environment_sampler.look()

    def flush(self) -> None:
        """Write what has gathered; never called inside a timed window."""
        memory, environment = self._memory_sampler.take(), self._environment_sampler.take()
        for part in _parts(memory, _SAMPLES_PER_EVENT) or ([()] if environment else []):
            self._journal.append(
                Trace, memory=tuple(part), environment=environment, missing=dict(self.environment.missing)
            )
            environment = ()

    def end(self) -> None:
        """Stop both threads for good and write what is left."""
        self._memory_sampler.end()
        self._environment_sampler.end()
        self.flush()


def _parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
