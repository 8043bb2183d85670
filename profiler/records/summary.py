"""What `--json` prints: one run and the verdict on it, in one object; null where something is missing."""

from __future__ import annotations

from profiler.records.device import Unit
from profiler.records.event import Outcome
from profiler.records.policy import Margin, Metric
from profiler.records.recipe import Recipe
from profiler.records.record import Record, SchemaVersion, Task
from profiler.records.run import Doubt, Energy
from profiler.records.spec import Licence


class BundleSummary(Record):
    """The bundle measured; `size_bytes` is what this task needs, `total_size_bytes` the whole folder."""

    sha256: str
    size_bytes: int
    total_size_bytes: int
    size_by_component: dict[str, int]
    parameters_by_component: dict[str, int]


class LatencySummary(Record):
    """Warm end-to-end latency of the timed images, in ns; `samples` in the order they were made.

    `outliers` counts them and leaves them in; `resolution_ns` is the smallest step between samples.
    """

    median: float
    p25: float | None
    p75: float | None
    p90: float | None
    ci95: tuple[float, float] | None
    ci_method: str
    ci_reachable_coverage: float
    quantile_method: str
    n: int
    samples: tuple[int, ...]
    outliers: int | None = None
    resolution_ns: float | None = None


class ColdSummary(Record):
    """Loading and the first image, each in a fresh process; medians over `n` processes, samples beside them."""

    load_ns: float | None
    first_image_ns: float | None
    n: int
    load_ns_samples: tuple[int, ...]
    first_image_ns_samples: tuple[int, ...]
    page_cache: str
    compile: str


class ObserverSummary(Record):
    """What sampling costs: paired images with the samplers on and off, as a ratio of their times."""

    ratio: float
    ci95: tuple[float, float] | None
    n: int


class RatioSummary(Record):
    """A ratio of two medians and its interval; `n` counts the samples above and below the line."""

    ratio: float
    ci95: tuple[float, float] | None
    n: tuple[int, int]


class CurvePoint(Record):
    """One slice of a run: images that began between two moments, in seconds from the first timed one."""

    start_s: float
    end_s: float
    n: int
    median_ns: float
    p25_ns: float | None
    p75_ns: float | None


class DriftSummary(Record):
    """How latency changed while images were made: the median of the last third over that of the first.

    `p_value` is of the trend test, two-sided; `onset_s` is where the series changes most, null where it does not.
    """

    ratio: float
    p_value: float
    onset_s: float | None
    curve: tuple[CurvePoint, ...]


class ThermalSummary(Record):
    """Temperatures over the run; null with a reason where the device tells none."""

    start_millicelsius: int | None
    max_millicelsius: int | None
    reason: str | None


class TierSummary(Record):
    """The deployability tier, what limits it, and the margins to every limit.

    `provenance` counts the policy's limits by where they come from: stated by its source, inferred, or chosen.
    """

    policy: str
    tier: str
    limiting: tuple[Metric, ...]
    missing: tuple[Metric, ...]
    margins: tuple[Margin, ...]
    confidence: str | None
    provenance: dict[str, int] | None = None


class ArtifactSummary(Record):
    """A file kept with the run."""

    path: str
    role: str
    sha256: str


class Summary(Record):
    """One run, summed up; `threads` is null where the runtime chose, `height` and `width` where no image comes out.

    `peak_memory_bytes` is null where a process was killed; `peak_memory_at_least_bytes` is the largest peak of the
    `memory_processes` that lived to tell theirs. `energy_joules` is that of one image, by the first meter in `energy`.
    `graphics_memory_bytes` is held by the graphics driver after the last image: it is not in the peak, nor a peak.
    """

    schema_version: SchemaVersion = 2
    run_id: str
    outcome: Outcome
    reason: str | None
    stage: str | None
    component: str | None
    device: Unit
    model: str
    recipe: Recipe
    task: Task
    prompt: str
    seed: int
    steps: int
    height: int | None
    width: int | None
    engine: str | None
    threads: int | None
    protocol: str
    bundle: BundleSummary
    latency_ns: LatencySummary | None
    stages_ns: dict[str, float]
    cold: ColdSummary
    peak_memory_bytes: int | None
    idle_memory_bytes: int | None
    memory_definition: str | None
    observer_effect: ObserverSummary | None
    energy_joules: float | None
    energy_reason: str | None
    thermal: ThermalSummary
    doubts: tuple[Doubt, ...]
    tier: TierSummary
    licence: Licence
    artifacts: tuple[ArtifactSummary, ...]
    failed_attempts: int
    drift: DriftSummary | None = None
    after_gap: RatioSummary | None = None
    canary_ratio: float | None = None
    peak_memory_at_least_bytes: int | None = None
    memory_processes: int = 0
    energy: tuple[Energy, ...] = ()
    graphics_memory_bytes: int | None = None
