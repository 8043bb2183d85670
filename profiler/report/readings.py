"""One gauge out of a sample of them, in the unit that is shown."""

from __future__ import annotations

from collections.abc import Callable

from profiler.records.event import EnvironmentSample

Reading = Callable[[EnvironmentSample], float | None]


def scaled(field: str, divisor: float) -> Reading:
    """Return what reads a field of a sample, over `divisor`; None where there was no reading."""

    def read(sample: EnvironmentSample) -> float | None:
        value = getattr(sample, field)
        return None if value is None else value / divisor

    return read
