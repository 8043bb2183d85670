"""Runs and images as flat rows, for CSV, Parquet and data frames: units in the names, nothing rounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from profiler.errors import InvalidRecord
from profiler.records.run import IterationSample, Run
from profiler.records.summary import Summary
from profiler.report.entry import Entry

Value = str | int | float | bool | None
Row = dict[str, Value]
Kind = type[str] | type[int] | type[float] | type[bool]
INT64 = range(-(2**63), 2**63)
_FREE_TEXTS = ("prompt", "negative_prompt")  # as long as anyone likes; not beside each image of a run
_BY_ENDING: dict[str, Kind] = {
    **dict.fromkeys(("median_ns", "p25_ns", "p75_ns", "p90_ns", "low_ns", "high_ns"), float),
    **dict.fromkeys(
        (
            "_s",
            "minutes",
            "ratio",
            "value",
            "percent",
            "average_1m",
            "guidance_text",
            "guidance_image",
            "_joules",
            "_watts",
        ),
        float,
    ),
    **dict.fromkeys(("_ns", "_bytes", "_millicelsius", "threads", "outliers", "_n", "_images"), int),
    **dict.fromkeys(("external_power", "is_phone", "virtual", "traced", "untethered", "synthetic"), bool),
    **dict.fromkeys(("seed", "steps", "width", "height", "image", "process", "iteration"), int),
}

# fmt: off
# What every table has, in order; a stage and a component add columns of their own.
RUN_COLUMNS = (
    "run_id", "started_wall_ns", "device", "processor", "operating_system", "is_phone", "virtual", "model", "task",
    "protocol", "gap_s", "minutes", "prompt", "negative_prompt", "seed", "steps", "scheduler", "guidance_text",
    "guidance_image", "width", "height", "precision", "compute_unit", "load_policy", "engine", "threads",
    "bundle_sha256", "host_version", "outcome", "reason", "stage", "component", "tier", "tier_policy",
    "tier_limited_by", "tier_missing", "tier_confidence", "latency_n", "latency_median_ns", "latency_p25_ns",
    "latency_p75_ns", "latency_p90_ns", "latency_ci95_low_ns", "latency_ci95_high_ns", "latency_ci_method",
    "latency_outliers", "load_median_ns", "first_image_median_ns", "cold_n", "page_cache", "peak_memory_bytes",
    "idle_memory_bytes", "graphics_memory_bytes",
    "memory_definition", "size_bytes", "total_size_bytes", "observer_ratio", "observer_n",
    "drift_ratio", "drift_p_value", "drift_onset_s", "canary_ratio", "after_gap_ratio",
    "start_temperature_millicelsius", "max_temperature_millicelsius", "battery_percent", "external_power",
    "available_memory_bytes", "free_storage_bytes", "load_average_1m", "cpu_governor", "energy_joules",
    "energy_source", "energy_images", "energy_rest_watts", "untethered", "unit_id", "synthetic", "doubts", "licence",
    "commercial_use",
)
SAMPLE_COLUMNS = (
    "run_id", "started_wall_ns", "device", "processor", "operating_system", "is_phone", "virtual", "model", "task",
    "protocol", "gap_s", "minutes", "seed", "steps", "scheduler", "guidance_text", "guidance_image", "width",
    "height", "precision", "compute_unit", "load_policy", "engine", "threads", "bundle_sha256", "host_version",
    "image", "phase", "process", "iteration", "start_boot_ns", "duration_ns", "gap_ns", "traced", "image_sha256",
)
# fmt: on


def columns(rows: Iterable[Row]) -> list[str]:
    """Return the names of all columns, in the order they first come up."""
    return list(dict.fromkeys(name for row in rows for name in row))


def kinds(rows: Sequence[Row], without_rows: Iterable[str] = ()) -> dict[str, Kind]:
    """Return each column's type, also where every value is missing: tables of different runs fit together.

    `without_rows` are the columns of a table that has no row to name them.
    """
    names = columns(rows) if rows else without_rows
    return {name: _kind(name, {type(row[name]) for row in rows if row.get(name) is not None}) for name in names}


def check_typed(rows: Iterable[Row]) -> Iterator[Row]:
    """Pass rows on whose whole numbers a typed column can hold. Raises InvalidRecord."""
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int) and value not in INT64:
                raise InvalidRecord(
                    f"run {row['run_id']}: {name} is beyond what a column of 64-bit integers holds",
                    hint="Leave the run out, or write CSV, which holds any number.",
                )
        yield row


def _kind(name: str, found: set[type]) -> Kind:
    if not found:
        return next((kind for ending, kind in _BY_ENDING.items() if name.endswith(ending)), str)
    return float if float in found else next(kind for kind in (bool, int, str) if kind in found)


def run_rows(entries: Iterable[Entry]) -> Iterator[Row]:
    """Yield one row a run; a component's size and a stage's median are columns of their own."""
    for entry in entries:
        yield run_row(entry.run, entry.summary)


def run_row(run: Run, summary: Summary) -> Row:
    """Return a run as one flat row."""
    return {
        **_identity(run),
        "outcome": run.outcome,
        "reason": run.reason,
        "stage": run.stage,
        "component": run.component,
        "tier": summary.tier.tier,
        "tier_policy": summary.tier.policy,
        "tier_limited_by": ", ".join(summary.tier.limiting) or None,
        "tier_missing": ", ".join(summary.tier.missing) or None,
        "tier_confidence": summary.tier.confidence,
        **_latency(summary),
        **{f"stage_median_ns.{name}": value for name, value in summary.stages_ns.items()},
        "load_median_ns": summary.cold.load_ns,
        "first_image_median_ns": summary.cold.first_image_ns,
        "cold_n": summary.cold.n,
        "page_cache": summary.cold.page_cache,
        "peak_memory_bytes": summary.peak_memory_bytes,
        "idle_memory_bytes": summary.idle_memory_bytes,
        "graphics_memory_bytes": summary.graphics_memory_bytes,
        "memory_definition": summary.memory_definition,
        "size_bytes": run.bundle.size_bytes,
        "total_size_bytes": run.bundle.total_size_bytes,
        **{f"size_bytes.{name}": size for name, size in run.bundle.size_by_component.items()},
        **_observer(summary),
        **_drift(summary),
        "start_temperature_millicelsius": summary.thermal.start_millicelsius,
        "max_temperature_millicelsius": summary.thermal.max_millicelsius,
        **_conditions(run),
        **_energy(summary),
        "untethered": run.settings.untethered,
        "unit_id": run.unit.unit_id,
        "synthetic": run.synthetic,
        "doubts": ", ".join(doubt.kind for doubt in run.doubts) or None,
        "licence": run.licence.name,
        "commercial_use": run.licence.commercial_use,
    }


def _energy(summary: Summary) -> Row:
    """Return the energy of one image by the first meter, and the power at rest before, in watts."""
    found = summary.energy[0] if summary.energy else None
    return {
        "energy_joules": summary.energy_joules,
        "energy_source": found.source if found else None,
        "energy_images": found.images if found else None,
        "energy_rest_watts": found.rest_watts if found else None,
    }


def sample_rows(runs: Iterable[Run]) -> Iterator[Row]:
    """Yield one row an image of any kind; a stage's time is a column of its own, and free texts are left to the run."""
    for run in runs:
        identity = {name: value for name, value in _identity(run).items() if name not in _FREE_TEXTS}
        for number, sample in enumerate(run.iterations, 1):
            yield {**identity, "image": number, **_sample(sample)}


def page_sample_rows(run: Run) -> Iterator[Row]:
    """Yield one row an image with nothing of the run but its id, for a page that says the rest above it."""
    for number, sample in enumerate(run.iterations, 1):
        yield {"run_id": run.run_id, "image": number, **_sample(sample)}


def _identity(run: Run) -> Row:
    """Return what a comparison groups by."""
    settings = run.settings
    return {
        "run_id": run.run_id,
        "started_wall_ns": run.started_wall_ns,
        "device": run.unit.profile,
        "processor": run.unit.processor,
        "operating_system": run.unit.operating_system,
        "is_phone": run.unit.is_phone,
        "virtual": run.unit.virtual,
        "model": run.model,
        "task": run.task,
        "protocol": run.measurement.kind,
        "gap_s": run.measurement.gap_s,
        "minutes": run.measurement.minutes,
        "prompt": settings.prompt,
        "negative_prompt": settings.negative_prompt,
        "seed": settings.seed,
        "steps": settings.steps,
        "scheduler": settings.scheduler,
        "guidance_text": settings.guidance.text,
        "guidance_image": settings.guidance.image,
        "width": settings.width,
        "height": settings.height,
        "precision": run.recipe.precision,
        "compute_unit": run.recipe.compute_unit,
        "load_policy": run.recipe.load_policy,
        "engine": run.engine,
        "threads": settings.threads,
        "bundle_sha256": run.bundle.sha256,
        "host_version": run.host_version,
    }


def _latency(summary: Summary) -> Row:
    latency = summary.latency_ns
    low, high = latency.ci95 if latency and latency.ci95 else (None, None)
    return {
        "latency_n": latency.n if latency else 0,
        "latency_median_ns": latency.median if latency else None,
        "latency_p25_ns": latency.p25 if latency else None,
        "latency_p75_ns": latency.p75 if latency else None,
        "latency_p90_ns": latency.p90 if latency else None,
        "latency_ci95_low_ns": low,
        "latency_ci95_high_ns": high,
        "latency_ci_method": latency.ci_method if latency else None,
        "latency_outliers": latency.outliers if latency else None,
    }


def _observer(summary: Summary) -> Row:
    effect = summary.observer_effect
    return {"observer_ratio": effect.ratio if effect else None, "observer_n": effect.n if effect else 0}


def _drift(summary: Summary) -> Row:
    drift = summary.drift
    return {
        "drift_ratio": drift.ratio if drift else None,
        "drift_p_value": drift.p_value if drift else None,
        "drift_onset_s": drift.onset_s if drift else None,
        "canary_ratio": summary.canary_ratio,
        "after_gap_ratio": summary.after_gap.ratio if summary.after_gap else None,
    }


def _conditions(run: Run) -> Row:
    start = run.conditions
    return {
        "battery_percent": start.power.battery_percent,
        "external_power": start.power.external_power,
        "available_memory_bytes": start.available_memory_bytes,
        "free_storage_bytes": start.free_storage_bytes,
        "load_average_1m": start.load_average_1m,
        "cpu_governor": start.cpu_governor,
    }


def _sample(sample: IterationSample) -> Row:
    stages: dict[str, Value] = {}
    for stage in sample.stages:
        before = stages.get(f"stage_ns.{stage.stage}", 0)
        stages[f"stage_ns.{stage.stage}"] = stage.duration_ns + (before if isinstance(before, int) else 0)
    return {
        "phase": sample.phase,
        "process": sample.process,
        "iteration": sample.iteration,
        "start_boot_ns": sample.start_boot_ns,
        "duration_ns": sample.duration_ns,
        "gap_ns": sample.gap_ns,
        "traced": sample.traced,
        **stages,
        "image_sha256": sample.image_sha256,
    }
