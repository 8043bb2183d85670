from __future__ import annotations

import pytest

from profiler.records.event import EnvironmentSample, StageTime
from profiler.records.job import Measurement
from profiler.validity import doubts
from tests.records_for_tests import BOOT_NS, make_recipe
from tests.runs_for_tests import make_conditions, make_sample, make_samples
from tests.validity.evidence_for_tests import canaries, environment, images, kinds, noisy, only_doubt, sound_run, trace

CAPPED = make_conditions(cpu_frequency_limit_khz=2_400_000, cpu_frequency_max_khz=2_400_000)
SLOWER = [1.0] * 15 + [1.12] * 15


def test_a_limit_that_fell_is_told_with_both_clocks() -> None:
    readings = [environment(cpu_frequency_limit_khz=khz) for khz in (2_400_000, 1_800_000, 2_400_000)]
    doubt = only_doubt(sound_run(conditions=CAPPED), trace(*readings))
    assert "limited from 2.40 GHz at the start to 1.80 GHz" in doubt.detail


def test_a_limit_from_the_start_is_told_against_the_hardware() -> None:
    conditions = make_conditions(cpu_frequency_limit_khz=1_500_000, cpu_frequency_max_khz=2_400_000)
    doubt = only_doubt(sound_run(conditions=conditions), trace(environment(cpu_frequency_limit_khz=1_500_000)))
    assert "limited to 1.50 GHz of 2.40 GHz from the start" in doubt.detail


def test_a_hair_below_the_limit_is_rounding() -> None:
    assert kinds(sound_run(conditions=CAPPED), trace(environment(cpu_frequency_limit_khz=2_390_000))) == []


def test_a_processor_that_counts_its_throttling_is_believed() -> None:
    readings = [environment(throttle_count=count) for count in (7, 7, 9)]
    assert "counted 2 times" in only_doubt(sound_run(), trace(*readings)).detail


@pytest.mark.parametrize("readings", [[environment(throttle_count=None)], [environment(throttle_count=9)], []])
def test_a_count_that_did_not_grow_is_no_sign(readings: list[EnvironmentSample]) -> None:
    assert kinds(sound_run(), trace(*readings)) == []


def test_images_that_grow_slower_tell_by_how_much_since_when_and_where() -> None:
    durations = noisy(30, factor=SLOWER)
    samples = [
        make_sample(
            iteration=number,
            start_boot_ns=BOOT_NS + sum(durations[:number]),
            duration_ns=duration_ns,
            stages=(
                StageTime(stage="text", duration_ns=50_000_000),
                StageTime(stage="denoise", duration_ns=duration_ns - 50_000_000),
            ),
        )
        for number, duration_ns in enumerate(durations)
    ]
    doubt = only_doubt(sound_run(iterations=images(samples)))
    assert doubt.kind == "throttled"
    assert (
        "took 12 % longer than the first, most in denoise (+14 %), from timed image 16 of 30 (5.99 s) on"
        in doubt.detail
    )


@pytest.mark.parametrize(
    ("between", "expected"),
    [((100, 100, 100), []), ((100, 100, 109), []), ((100, 100, 100, 120, 120, 120), ["throttled"]), ((), [])],
)
def test_a_canary_beyond_a_tenth_over_its_cool_time_is_a_sign(between: tuple[int, ...], expected: list[str]) -> None:
    assert kinds(sound_run(canaries=canaries(100, *between))) == expected


def test_a_canary_that_kept_its_time_speaks_for_the_processor() -> None:
    slower = images(make_samples(noisy(30, factor=SLOWER)))
    told = "it was not the processor's clock"
    doubt = only_doubt(sound_run(iterations=slower, canaries=canaries(100, 101, 101)))
    assert told in doubt.detail
    assert "Look for other work" in doubt.advice
    on_npu = sound_run(iterations=slower, canaries=canaries(100, 101, 101), recipe=make_recipe(compute_unit="all"))
    assert told not in only_doubt(on_npu).detail
    assert told not in only_doubt(sound_run(iterations=slower, canaries=canaries(100, 150, 150))).detail
    assert told not in only_doubt(sound_run(iterations=slower)).detail


@pytest.mark.parametrize(
    ("measurement", "told"),
    [
        (Measurement(kind="burst"), "--protocol spaced measures it cool"),
        (Measurement(kind="spaced", gap_s=2.0), "The pauses of 2 s were too short"),
        (Measurement(kind="sustained", minutes=1.0), "This is what sustained measures"),
    ],
)
def test_advice_depends_on_the_protocol_that_was_used(measurement: Measurement, told: str) -> None:
    assert told in only_doubt(sound_run(measurement=measurement, canaries=canaries(100, 150))).advice


def test_other_work_is_to_be_stopped_before_heat_is_blamed() -> None:
    run = sound_run(iterations=images(make_samples(noisy(30, factor=SLOWER))))
    found = {doubt.kind: doubt for doubt in doubts(run, [trace(environment(other_cpu_percent=150.0))])}
    assert "Other work took 1.5 cores" in found["throttled"].advice
