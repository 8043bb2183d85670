"""Runs on a phone that give no cause for doubt, and traces beside them; a test overrides what it is about."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from profiler.quantities import NS_PER_MS, NS_PER_S
from profiler.records.event import EnvironmentSample, MemorySample
from profiler.records.run import CanarySample, Doubt, IterationSample, Run
from profiler.records.trace import ProcessTrace
from profiler.validity import doubts
from tests.messages_for_tests import make_environment
from tests.records_for_tests import BOOT_NS
from tests.runs_for_tests import make_run, make_sample, make_samples, make_settings, make_unit

IMAGE_NS = 400 * NS_PER_MS


def noisy(n: int, *, noise: float = 0.01, seed: int = 1, factor: Sequence[float] | None = None) -> tuple[int, ...]:
    """Return n image times about 400 ms with normal noise, each multiplied by its factor."""
    chance = random.Random(seed)
    factors = factor or [1.0] * n
    return tuple(round(IMAGE_NS * f * chance.gauss(1, noise)) for f in factors)


def sound_run(**fields: Any) -> Run:
    """Return a run that nothing speaks against: one process, all images of the settings."""
    iterations = fields.pop("iterations", None) or images(make_samples(noisy(6)))
    timed = sum(sample.phase == "timed" for sample in iterations)
    settings = fields.pop("settings", make_settings())
    settings = replace(settings, repeats=timed, warmups=1, cold_starts=1)
    return make_run(**({"unit": make_unit(is_phone=True)} | fields), iterations=iterations, settings=settings)


def images(timed: Sequence[IterationSample], *more: IterationSample) -> tuple[IterationSample, ...]:
    """Return a cold and a warm-up image, then these, none overlapping."""
    cold = make_sample(phase="cold", start_boot_ns=BOOT_NS - 2 * NS_PER_S)
    warmup = make_sample(phase="warmup", start_boot_ns=BOOT_NS - NS_PER_S)
    return (cold, warmup, *timed, *more)


def observers(durations: Sequence[tuple[int, int]], *, start_boot_ns: int) -> tuple[IterationSample, ...]:
    """Return pairs of images with the samplers on, then off."""
    samples = []
    for number, (on_ns, off_ns) in enumerate(durations):
        for half, duration_ns in enumerate((on_ns, off_ns)):
            fields: dict[str, Any] = {"phase": "observer", "iteration": 2 * number + half, "traced": half == 0}
            samples.append(make_sample(start_boot_ns=start_boot_ns, duration_ns=duration_ns, **fields))
            start_boot_ns += duration_ns
    return tuple(samples)


def environment(**fields: Any) -> EnvironmentSample:
    """Return a reading of an idle, cool device in the middle of the first image."""
    quiet = {"cpu_load_percent": 50.0, "own_cpu_percent": 395.0, "other_cpu_percent": 5.0}
    cool = {"device_boot_ns": BOOT_NS + IMAGE_NS // 2, "cpu_frequency_limit_khz": 2_400_000}
    return make_environment(**(quiet | cool | fields))


def trace(*readings: EnvironmentSample, **fields: Any) -> ProcessTrace:
    """Return what was sampled in the first process; no memory where none is given."""
    parts: dict[str, Any] = {"process": 0, "spans": (), "memory": (), "missing": {"memory": "not read"}}
    return ProcessTrace(**(parts | {"environment": readings} | fields))


def memory_samples(*resident_bytes: int, every_ns: int = 20 * NS_PER_MS) -> tuple[MemorySample, ...]:
    """Return samples from the first timed image on."""
    return tuple(
        MemorySample(device_boot_ns=BOOT_NS + number * every_ns, resident_bytes=resident)
        for number, resident in enumerate(resident_bytes)
    )


def canaries(cool_ns: int, *between_ns: int) -> tuple[CanarySample, ...]:
    """Return one reading before loading, and some between images."""
    told = [("cool", cool_ns), *(("between", duration_ns) for duration_ns in between_ns)]
    return tuple(
        CanarySample(process=0, device_boot_ns=BOOT_NS + number, when=when, duration_ns=duration_ns)  # type: ignore[arg-type]
        for number, (when, duration_ns) in enumerate(told)
    )


def kinds(run: Run, *traces: ProcessTrace) -> list[str]:
    """Return the kinds of all doubts."""
    return [doubt.kind for doubt in doubts(run, traces)]


def only_doubt(run: Run, *traces: ProcessTrace) -> Doubt:
    """Return the one doubt that a run gives cause for."""
    (doubt,) = doubts(run, traces)
    return doubt
