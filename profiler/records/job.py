"""A job: all that a runner is told about one measurement."""

from __future__ import annotations

from typing import Literal

from profiler.records.plan import Plan
from profiler.records.record import Name, Record, SchemaVersion

EngineName = Name


class Measurement(Record):
    """The protocol of measurement, part of every comparison key.

    `spaced` waits `gap_s` before each repetition, `burst` waits nothing, `sustained` goes on for
    `minutes` whatever `repeats` says.
    """

    kind: Literal["spaced", "burst", "sustained"]
    gap_s: float | None = None
    minutes: float | None = None


class Sampling(Record):
    """How often the runner reads its gauges while it works, and at least how long apart its canary runs."""

    memory_interval_ms: int = 20
    environment_interval_ms: int = 1000
    canary_interval_ms: int = 1000


class OnDisconnect(Record):
    """What the runner does when the host goes away: stop after a while, or finish and exit."""

    kind: Literal["stop_after_s", "finish_then_exit"]
    seconds: float | None = None


class InputFile(Record):
    """The job's tensors, in the runner's own storage."""

    path: str
    sha256: str


class Job(Record):
    """One measurement in one runner process.

    `bundle` is a folder on the device. The first image after loading is the cold one; `warmups`,
    `repeats` and `observer_pairs` (timed images with the samplers on and off in turn) follow it. `untethered` has the
    timed images wait until there is no external power, and `rest_s` for so long doing nothing: energy's baseline.
    """

    schema_version: SchemaVersion = 2
    job_id: str
    bundle: str
    bundle_sha256: str
    plan: Plan
    inputs: InputFile
    engine: EngineName
    threads: int | None
    warmups: int
    repeats: int
    observer_pairs: int
    measurement: Measurement
    sampling: Sampling
    on_disconnect: OnDisconnect
    untethered: bool = False
    rest_s: float = 0.0
