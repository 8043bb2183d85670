"""Entries for reports: a whole one with traces, a failed one, and one whose every word is hostile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace
from PIL import Image

from profiler.catalog import policy
from profiler.quantities import MIB, NS_PER_MS, NS_PER_S
from profiler.records.event import EnvironmentSample, MemorySample, StageTime
from profiler.records.run import CanarySample, Doubt, ImageFile, IterationSample, Run
from profiler.records.trace import ProcessTrace, Span
from profiler.report.entry import Entry
from profiler.report.summary import summarise
from tests.records_for_tests import BOOT_NS, NETWORK, SHA_IMAGE
from tests.runs_for_tests import (
    make_bundle_use,
    make_process,
    make_run,
    make_sample,
    make_samples,
    make_settings,
    make_unit,
)

HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}\u202e שלום 👩‍🚀\x1b[31m $x^2$ " + "x" * 300
)


def make_entry(folder: Path, **fields: Any) -> Entry:
    """Return an entry of a run with traces; its images are put into the folder."""
    return entry_of(make_run(**fields), folder, (make_trace(),))


def entry_of(run: Run, folder: Path, traces: tuple[ProcessTrace, ...] = ()) -> Entry:
    """Return an entry of any run, with a picture where its record names one."""
    for image in run.images:
        path = folder / image.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".png":
            Image.fromarray(np.full((16, 16, 3), 200, np.uint8)).save(path)
    return Entry(run, summarise(run, folder, policy("moi-bench")), traces, folder)


def make_trace(**fields: Any) -> ProcessTrace:
    """Return a second of samples: loads, a cold image, a timed one."""
    spans = [
        Span(
            phase="load",
            iteration=None,
            stage="load",
            component=name,
            start_boot_ns=BOOT_NS + at,
            end_boot_ns=BOOT_NS + at + 50 * NS_PER_MS,
        )
        for at, name in zip(range(0, 10**9, 50 * NS_PER_MS), NETWORK, strict=False)
    ]
    start = spans[-1].end_boot_ns or 0
    for number, phase in enumerate(("cold", "timed")):
        begin = start + number * 200 * NS_PER_MS
        spans.append(
            Span(
                phase=phase,
                iteration=0,
                stage="denoise",
                component="denoiser",
                start_boot_ns=begin,
                end_boot_ns=begin + 200 * NS_PER_MS,
            )
        )  # type: ignore[arg-type]
    memory = tuple(
        MemorySample(device_boot_ns=BOOT_NS + step * 20 * NS_PER_MS, resident_bytes=(50 + step) * MIB)
        for step in range(30)
    )
    return replace(
        ProcessTrace(
            process=0,
            spans=tuple(spans),
            memory=memory,
            environment=make_environment(),
            missing={"battery_percent": "no battery"},
        ),
        **fields,
    )


def make_environment() -> tuple[EnvironmentSample, ...]:
    """Return a warming device whose clock is held back."""
    return tuple(
        EnvironmentSample(
            device_boot_ns=BOOT_NS + step * NS_PER_S,
            temperature_millicelsius=35_000 + 500 * step,
            battery_percent=None,
            external_power=None,
            cpu_frequency_khz=2_000_000 - 1000 * step,
            cpu_load_percent=50.0,
            own_cpu_percent=150.0,
            other_cpu_percent=10.0 * step,
            cpu_frequency_limit_khz=2_000_000,
        )
        for step in range(4)
    )


def make_canaries() -> tuple[CanarySample, ...]:
    """Return a canary that slows down."""
    return tuple(
        CanarySample(
            process=0,
            device_boot_ns=BOOT_NS + step * NS_PER_S,
            when="between" if step else "cool",
            duration_ns=2_000_000 + 200_000 * step,
        )
        for step in range(4)
    )


def png_image(role: Any = "output") -> ImageFile:
    """Return the record of a picture."""
    return ImageFile(path=f"{role}.png", sha256=SHA_IMAGE, role=role)


def edit_run(**fields: Any) -> Run:
    """Return an edit with every kind of image, one after another, and a source."""
    given: dict[str, Any] = {
        "task": "edit",
        "iterations": tuple(_every_kind()),
        "images": (png_image("source"), png_image()),
        "canaries": make_canaries(),
        **fields,
    }
    return make_run(**given)


def _every_kind() -> Iterator[IterationSample]:
    kinds = [("cold", 900, True), ("warmup", 500, True), *[("timed", 400 + step, True) for step in range(25)]]
    start_ns = BOOT_NS
    for place, (phase, duration_ms, traced) in enumerate([*kinds, ("observer", 410, True), ("observer", 405, False)]):
        duration_ns = duration_ms * NS_PER_MS
        at = {"iteration": place, "start_boot_ns": start_ns}
        yield make_sample(phase=phase, traced=traced, duration_ns=duration_ns, **at)
        start_ns += duration_ns


def failed_run(**fields: Any) -> Run:
    """Return a run that made no image."""
    ended: dict[str, Any] = {
        "outcome": "failed",
        "reason": "out_of_memory: no",
        "stage": "denoise",
        "component": "denoiser",
    }
    process = make_process(**ended, memory=None, first_image_ns=None)
    return make_run(**{**ended, "iterations": (), "processes": (process,), "images": (), **fields})


def hostile_run() -> Run:
    """Return a run whose every free word is hostile."""
    stages = (StageTime(stage=HOSTILE, duration_ns=300_000_000), StageTime(stage="=1+1", duration_ns=100_000_000))
    return make_run(
        model=HOSTILE,
        settings=make_settings(
            prompt=HOSTILE, negative_prompt="=HYPERLINK(1)", scheduler=HOSTILE, source_image=HOSTILE
        ),
        unit=make_unit(profile=HOSTILE, model=HOSTILE, processor=HOSTILE, operating_system=HOSTILE),
        iterations=tuple(replace(sample, stages=stages) for sample in make_samples()),
        bundle=make_bundle_use(size_by_component={HOSTILE: 5}, parameters_by_component={HOSTILE: 5}),
        processes=(make_process(outcome="failed", reason=HOSTILE, load_ns_by_component={HOSTILE: 5}),),
        doubts=(Doubt(kind="charging", detail=HOSTILE, advice=HOSTILE),),
        engine=HOSTILE,
        outcome="failed",
        reason=HOSTILE,
        stage=HOSTILE,
        component=HOSTILE,
        images=(ImageFile(path="../../secret.png", sha256=SHA_IMAGE, role="output"),),
    )
