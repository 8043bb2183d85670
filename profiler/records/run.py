"""A run: everything one session brought back, raw samples in order."""

from __future__ import annotations

from typing import Literal

from profiler.records.bundle import Source
from profiler.records.device import Conditions, Unit
from profiler.records.event import MemoryReading, Outcome, StageTime
from profiler.records.job import Measurement, Sampling
from profiler.records.plan import Guidance
from profiler.records.recipe import Recipe
from profiler.records.record import Record, SchemaVersion, Task
from profiler.records.spec import Licence


class Settings(Record):
    """The inputs and settings that can change a result or its cost.

    `height` and `width` are null where no image comes out but a tensor. `made_up_inputs` are those that nobody gave:
    drawn from the seed, or zero.
    """

    prompt: str
    negative_prompt: str
    seed: int
    steps: int
    guidance: Guidance
    scheduler: str
    height: int | None
    width: int | None
    source_image: str | None
    inputs_sha256: str
    threads: int | None
    warmups: int
    repeats: int
    cold_starts: int
    made_up_inputs: tuple[str, ...] = ()
    untethered: bool = False
    rest_s: float = 0.0


class BundleUse(Record):
    """The bundle measured; `size_bytes` covers the files that this task's plan reaches."""

    sha256: str
    size_bytes: int
    total_size_bytes: int
    size_by_component: dict[str, int]
    parameters_by_component: dict[str, int]
    source: Source


class IterationSample(Record):
    """One image's times, in the order they were made; `image_sha256` is the tensor's where a tensor comes out."""

    phase: Literal["cold", "warmup", "timed", "observer"]
    process: int
    iteration: int
    start_boot_ns: int
    duration_ns: int
    gap_ns: int | None
    stages: tuple[StageTime, ...]
    image_sha256: str
    traced: bool


class CanarySample(Record):
    """One reading of the runner's canary workload."""

    process: int
    device_boot_ns: int
    when: Literal["cool", "between"]
    duration_ns: int


class Energy(Record):
    """What timed images drew by one meter: `joules` for `images` within `window_s`, and `rest_watts` at rest before.

    `power_rails` sums what the device meters of its parts, plugged in or not; the other two see all that the battery
    gives. `readings` counts distinct ones, and `evidence` says by what a unit and sign are known.
    """

    source: Literal["power_rails", "charge_counter", "battery_current"]
    joules: float
    images: int
    window_s: float
    readings: int
    rest_watts: float | None
    evidence: str


ExitKind = Literal[
    "low_memory",
    "crash",
    "native_crash",
    "not_responding",
    "signalled",
    "stopped",
    "frozen",
    "too_much_work",
    "restarted",
    "other",
]


class ProcessExit(Record):
    """How a device's system says that a runner process ended; `evidence` is its own text.

    `resident_bytes` is what the process held then, where it is told.
    """

    kind: ExitKind
    detail: str
    signal: int | None
    resident_bytes: int | None
    evidence: str


class SystemMemory(Record):
    """What a phone's system says of a runner process after its last image; graphics memory is nowhere else.

    The system walks over the process's pages for it, so it is never asked while images are timed; null is not told.
    """

    pss_bytes: int | None
    swap_pss_bytes: int | None
    graphics_bytes: int | None
    definition: str


class ProcessRecord(Record):
    """One runner process of the session: its loads, memory, and how it ended.

    `launch_ns` is host time from starting the process to its hello; `load_ns_by_component` and
    `first_image_ns` are device time and null where the process did not get that far.
    """

    process: int
    journal: str
    outcome: Outcome
    reason: str | None
    stage: str | None
    component: str | None
    launch_ns: int | None
    page_cache: Literal["dropped", "warm", "unknown"]
    compile: Literal["first", "cached"]
    load_ns_by_component: dict[str, int]
    first_image_ns: int | None
    idle_memory: MemoryReading | None
    memory: MemoryReading | None
    last_seq: int
    exit: ProcessExit | None = None
    system_memory: SystemMemory | None = None


class ImageFile(Record):
    """An image kept with the run; `path` is relative to the run's folder.

    `deviation_levels` is the standard deviation of all its values, 0 to 255: near zero is one flat colour.
    """

    path: str
    sha256: str
    role: Literal["output", "source"]
    deviation_levels: float | None = None


class Doubt(Record):
    """A reason not to trust a number, and what would remove it."""

    kind: Literal[
        "not_a_phone",
        "virtual_device",
        "synthetic",
        "unknown_model",
        "random_weights",
        "made_up_inputs",
        "broken_clock",
        "implausible",
        "samples_lost",
        "charging",
        "power_changed",
        "low_battery",
        "on_battery",
        "power_save",
        "not_foreground",
        "background_load",
        "oversubscribed",
        "blank_image",
        "unchanged_image",
        "not_deterministic",
        "too_few",
        "wide_interval",
        "coarse_clock",
        "outliers",
        "warming",
        "throttled",
        "after_gap",
        "observer_effect",
    ]
    detail: str
    advice: str


class SessionHeader(Record):
    """What is known before the device is touched."""

    run_id: str
    started_wall_ns: int
    host_version: str
    model: str
    task: Task
    unit: Unit
    conditions: Conditions
    measurement: Measurement
    sampling: Sampling
    settings: Settings
    recipe: Recipe
    bundle: BundleUse
    licence: Licence


class Session(SessionHeader):
    """An open session (`session.json`); whoever finds it without an owner collects it.

    `storage` is where its runners' files are: a folder here, or on a device that has files of its own.
    """

    schema_version: SchemaVersion = 2
    token: str
    storage: str


class Launch(Record):
    """What the host knows of one runner process it started; `pid` is set once the process said hello."""

    process: int
    page_cache: Literal["dropped", "warm", "unknown"]
    compile: Literal["first", "cached"]
    launch_ns: int | None
    pid: int | None
    runner_version: str | None
    engine: str | None
    exit_code: int | None = None
    exit: ProcessExit | None = None
    virtual: bool = False
    synthetic: bool = False
    system_memory: SystemMemory | None = None
    runner_platform: str | None = None


class Run(SessionHeader):
    """The stored record (`run.json`); traces stay in the journals beside it.

    `temperature_reason` says why `max_temperature_millicelsius` is missing, `energy_reason` why `energy` is. The first
    meter in `energy` is the one to quote. `virtual` and `synthetic` are what the runner said of itself: that its device
    is simulated, and its work only modelled.
    """

    schema_version: SchemaVersion = 2
    ended_wall_ns: int
    runner_version: str | None
    engine: str | None
    outcome: Outcome
    reason: str | None
    stage: str | None
    component: str | None
    processes: tuple[ProcessRecord, ...]
    iterations: tuple[IterationSample, ...]
    images: tuple[ImageFile, ...]
    max_temperature_millicelsius: int | None
    temperature_reason: str | None
    doubts: tuple[Doubt, ...]
    canaries: tuple[CanarySample, ...] = ()
    energy: tuple[Energy, ...] = ()
    energy_reason: str | None = None
    virtual: bool = False
    synthetic: bool = False
    conditions_after: Conditions | None = None
    runner_platform: str | None = None
