"""A run with what was sampled beside it, as the questions look at it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from profiler import effects, stats
from profiler.records.event import EnvironmentSample
from profiler.records.run import IterationSample, Run
from profiler.records.trace import ProcessTrace
from profiler.validity.impossible import clock_fault

# Chosen: a tenth of the cores may cost a tenth of the time.
OTHERS_SHARE_OF_CORES = 0.10


class Evidence:
    """What a doubt may rest on; built once, asked by all."""

    def __init__(self, run: Run, traces: Sequence[ProcessTrace]) -> None:
        self.run = run
        self.traces = traces

    @cached_property
    def timed(self) -> list[IterationSample]:
        """Return the timed images; none where their clock is broken, since what follows from them is no finding."""
        return [] if clock_fault(self.run) else effects.timed(self.run)

    @cached_property
    def durations(self) -> list[float]:
        """Return the timed images' times in ns, in order."""
        return [float(sample.duration_ns) for sample in self.timed]

    @cached_property
    def trend(self) -> stats.Trend | None:
        """Return how the timed images changed from first to last; None where there are too few."""
        return effects.trend(self.run) if self.timed else None

    @cached_property
    def environment(self) -> list[EnvironmentSample]:
        """Return the slow gauges' readings about the time of the timed images; all where there are no such.

        A reading of work covers the time since the one before it, so the first one after the last image belongs to it.
        """
        readings = [sample for trace in self.traces for sample in trace.environment]
        if not self.timed:
            return readings
        start_ns, last = self.timed[0].start_boot_ns, self.timed[-1]
        end_ns = last.start_boot_ns + last.duration_ns
        later = [sample for sample in readings if sample.device_boot_ns > start_ns]
        inside = [sample for sample in later if sample.device_boot_ns <= end_ns]
        return later[: len(inside) + 1] or readings

    @property
    def cores_taken_by_others(self) -> float | None:
        """Return how many cores everything but the runner used meanwhile, on average; None where nobody counted."""
        readings = [s.other_cpu_percent for s in self.environment if s.other_cpu_percent is not None]
        return sum(readings) / len(readings) / 100 if readings else None

    @property
    def is_shared(self) -> bool:
        """Tell whether others used more than a tenth of all cores meanwhile; then nothing else is to blame first."""
        taken, cores = self.cores_taken_by_others, self.run.unit.logical_cores
        return taken is not None and bool(cores) and taken > OTHERS_SHARE_OF_CORES * (cores or 0)
