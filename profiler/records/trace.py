"""What was read beside the work, put together from one process's journal: for plots, and for doubts."""

from __future__ import annotations

from profiler.records.event import EnvironmentSample, MemorySample, Phase
from profiler.records.record import Record


class Span(Record):
    """One load or one stage of one image; `end_boot_ns` is null where the process died in it."""

    phase: Phase
    iteration: int | None
    stage: str
    component: str | None
    start_boot_ns: int
    end_boot_ns: int | None


class ProcessTrace(Record):
    """One runner process over time, on the device's boot clock, each part in order.

    `missing` says for each gauge without readings why. Memory is sampled only while `traced` images are made.
    """

    process: int
    spans: tuple[Span, ...]
    memory: tuple[MemorySample, ...]
    environment: tuple[EnvironmentSample, ...]
    missing: dict[str, str]
