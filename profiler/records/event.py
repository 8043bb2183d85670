"""What a runner writes to its journal and sends: numbered events on the device's own clock."""

from __future__ import annotations

from typing import Literal

from profiler.records.record import Record

Phase = Literal["load", "cold", "warmup", "timed", "observer"]
Outcome = Literal["completed", "failed", "aborted", "interrupted", "refused"]


class Event(Record, tag_field="event"):
    """The head of every event; `device_boot_ns` is a clock that does not stop in sleep."""

    seq: int
    job_id: str
    device_boot_ns: int
    wall_ns: int


class Begin(Event, tag="begin"):
    """Written before each load and each stage, so that a killed runner tells where it died."""

    phase: Phase
    iteration: int | None
    stage: str
    component: str | None


class LoadDone(Event, tag="load"):
    """A component is ready to run."""

    component: str
    duration_ns: int
    memory: MemoryReading


class MemoryReading(Record):
    """The runner's own memory; `definition` names the source of `peak_bytes`.

    `anonymous_bytes` and `file_backed_bytes` split `resident_bytes` where the system tells.
    """

    resident_bytes: int | None
    peak_bytes: int | None
    anonymous_bytes: int | None
    file_backed_bytes: int | None
    swapped_bytes: int | None
    definition: str
    reason: str | None = None


class StageTime(Record):
    """One stage of an iteration; `rounds_ns` are a loop's single rounds, in order."""

    stage: str
    duration_ns: int
    rounds_ns: tuple[int, ...] | None = None


class IterationDone(Event, tag="iteration"):
    """One image, from inputs in memory to finished uint8 RGB, with its stages in order; or one tensor.

    `gap_ns` is the time since the last iteration ended; `traced` says whether samplers ran meanwhile.
    """

    phase: Phase
    iteration: int
    start_boot_ns: int
    duration_ns: int
    gap_ns: int | None
    stages: tuple[StageTime, ...]
    image_sha256: str
    traced: bool


class MemorySample(Record):
    """One reading of resident memory, and of swapped where the system swaps: a lower bound of the peak around it."""

    device_boot_ns: int
    resident_bytes: int
    swapped_bytes: int | None = None


class EnvironmentSample(Record):
    """One reading of the slow gauges; null where there is none.

    `own_cpu_percent` and `other_cpu_percent` (everything but the runner) count one core as 100;
    `cpu_frequency_limit_khz` is what the system lets the fastest core run at, and `throttle_count` how often the
    processor says that heat slowed it down since boot. `temperature_millicelsius` is the hottest processor or skin
    sensor, the battery's apart. `battery_current_raw` is what the system says, of unknown unit and sign;
    `thermal_headroom` is 1.0 where throttling is severe; energy by rail counts since boot.
    """

    device_boot_ns: int
    temperature_millicelsius: int | None
    battery_percent: float | None
    external_power: bool | None
    cpu_frequency_khz: int | None
    cpu_load_percent: float | None
    own_cpu_percent: float | None
    other_cpu_percent: float | None = None
    cpu_frequency_limit_khz: int | None = None
    throttle_count: int | None = None
    battery_temperature_millicelsius: int | None = None
    battery_current_raw: int | None = None
    battery_voltage_millivolts: int | None = None
    battery_charge_counter_microamperehours: int | None = None
    thermal_status: int | None = None
    thermal_headroom: float | None = None
    energy_microwattseconds_by_rail: dict[str, int] | None = None


class Trace(Event, tag="trace"):
    """Samples gathered since the last trace, written between iterations.

    `missing` says for each gauge that has no reading why.
    """

    memory: tuple[MemorySample, ...]
    environment: tuple[EnvironmentSample, ...]
    missing: dict[str, str]


class Idle(Event, tag="idle"):
    """The runner's memory before it touches the model: a baseline beside the peak, never subtracted."""

    memory: MemoryReading


class Waiting(Event, tag="waiting"):
    """The job waits on purpose before its next image, and why; told again every few seconds as a sign of life."""

    reason: str


class Rest(Event, tag="rest"):
    """The device idled on purpose between two moments, the model loaded: what it draws without work."""

    start_boot_ns: int
    end_boot_ns: int


class Canary(Event, tag="canary"):
    """How long the runner's own small workload took: it changes with the processor, not with the model.

    `cool` is taken before anything is loaded, `between` images while they are made.
    """

    when: Literal["cool", "between"]
    duration_ns: int


class Artifact(Event, tag="artifact"):
    """A file the runner made; `path` is relative to its storage."""

    path: str
    sha256: str
    media: Literal["image/x-portable-pixmap"]
    phase: Phase
    iteration: int


class Stop(Event, tag="stop"):
    """The job's end; `memory` holds the lifetime peak of this process, load included."""

    outcome: Outcome
    reason: str | None
    stage: str | None
    component: str | None
    memory: MemoryReading


AnyEvent = Idle | Begin | LoadDone | IterationDone | Trace | Canary | Waiting | Rest | Artifact | Stop
