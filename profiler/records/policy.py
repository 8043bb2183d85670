"""Tier limits as data, and the verdict they give."""

from __future__ import annotations

from typing import Literal

from profiler.records.record import Record, SchemaVersion

Metric = Literal["latency", "peak_memory", "size"]
TierName = Literal["D4", "D3", "D2", "D1"]


class Limit(Record):
    """An upper bound on one statistic; `value` is in ns or bytes as the statistic's name says."""

    metric: Metric
    statistic: str
    value: int
    provenance: Literal["stated", "inferred", "chosen"]
    source: str


class TierRule(Record):
    """All of its limits must be met; a tier without limits needs only a completed run."""

    tier: TierName
    limits: tuple[Limit, ...]


class Policy(Record):
    """Tier rules, best first (`device_profiles/policies/*.toml`)."""

    schema_version: SchemaVersion = 1
    name: str
    title: str
    source: str
    tiers: tuple[TierRule, ...]


class Measured(Record):
    """What a policy is asked about; null is missing, never zero."""

    completed: bool
    latency_ns: float | None
    latency_ci95_ns: tuple[float, float] | None = None
    peak_memory_bytes: int | None
    size_bytes: int | None


class Margin(Record):
    """How far a metric is from one tier's limit: positive is room left, negative is too much."""

    tier: TierName
    metric: Metric
    value: int | None
    limit: int
    margin: int | None
    share_of_limit: float | None


class TierVerdict(Record):
    """The best tier whose every limit is met; `limiting` is what keeps it from the next better one.

    `tier` is `none` for a measured failure and `unknown` where a required metric is missing.
    `confidence` is the share of the latency interval that keeps the verdict, said to cover latency
    sampling only; null where there is no interval.
    """

    policy: str
    tier: TierName | Literal["none", "unknown"]
    limiting: tuple[Metric, ...]
    missing: tuple[Metric, ...]
    margins: tuple[Margin, ...]
    confidence: Literal["latency interval within the tier", "latency interval crosses a limit"] | None


class ReferenceRow(Record):
    """A published result; absent where nothing was published, since TOML knows no null."""

    model: str
    device: str
    latency_ns: int | None = None
    peak_memory_bytes: int | None = None
    size_bytes: int | None = None
    size_provenance: Literal["stated", "inferred", "chosen"]
    published_tier: TierName | None = None
    source: str


class ReferenceTable(Record):
    """Published results of one source (`device_profiles/reference/*.toml`)."""

    schema_version: SchemaVersion = 1
    title: str
    source: str
    rows: tuple[ReferenceRow, ...]
