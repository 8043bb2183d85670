from __future__ import annotations

import pytest
from msgspec.structs import replace

from profiler.quantities import MIB, NS_PER_MS
from profiler.records.job import Measurement
from tests.runs_for_tests import make_samples, make_settings
from tests.validity.evidence_for_tests import (
    IMAGE_NS,
    environment,
    images,
    kinds,
    memory_samples,
    noisy,
    only_doubt,
    sound_run,
    trace,
)

PEAK = 160_000_000


def test_a_broken_clock_silences_what_would_follow_from_it() -> None:
    wild = make_samples((IMAGE_NS, 5 * IMAGE_NS, -1, 7 * IMAGE_NS, IMAGE_NS, IMAGE_NS))
    doubt = only_doubt(sound_run(iterations=images(wild)))
    assert doubt.kind == "broken_clock"
    assert "Latency is withheld" in doubt.detail


@pytest.mark.parametrize(("seen", "expected"), [(PEAK + MIB, []), (PEAK + 4 * MIB, ["implausible"])])
def test_more_resident_than_the_peak_is_a_fault_beyond_what_the_kernel_counts_late(
    seen: int, expected: list[str]
) -> None:
    assert kinds(sound_run(), trace(environment(), memory=memory_samples(*[seen] * 200))) == expected


def test_memory_that_was_rarely_read_is_lost() -> None:
    often = trace(environment(), memory=memory_samples(*[PEAK] * 140))
    rarely = trace(environment(), memory=memory_samples(*[PEAK] * 14, every_ns=200 * NS_PER_MS))
    run = sound_run()
    assert kinds(run, often) == []
    assert "memory was read 13 times where 1" in only_doubt(run, rarely).detail


def test_a_device_without_cheap_readings_lost_none() -> None:
    assert kinds(sound_run(), trace(environment(), memory=(), missing={"memory": "no statm"})) == []


def test_a_sampler_that_never_ran_lost_all() -> None:
    assert "memory was read 0 times" in only_doubt(sound_run(), trace(environment(), missing={})).detail


def test_a_failed_run_is_not_expected_to_hold_all_images() -> None:
    run = replace(sound_run(), settings=make_settings(repeats=50), outcome="failed")
    assert kinds(run) == []
    assert kinds(replace(run, outcome="completed")) == ["samples_lost"]


def test_a_sustained_run_has_as_many_images_as_time_allows() -> None:
    run = sound_run(measurement=Measurement(kind="sustained", minutes=1.0), iterations=images(make_samples(noisy(9))))
    assert kinds(replace(run, settings=replace(run.settings, repeats=20))) == []
