from __future__ import annotations

from typing import Any

import pytest

from profiler.quantities import NS_PER_S
from profiler.records.job import Measurement
from profiler.records.run import Doubt, Run
from profiler.records.trace import ProcessTrace
from profiler.validity import doubts
from tests.records_for_tests import BOOT_NS
from tests.runs_for_tests import make_samples
from tests.validity.evidence_for_tests import environment, images, kinds, noisy, observers, sound_run, trace

SUSTAINED = Measurement(kind="sustained", minutes=0.5)
END_NS = BOOT_NS + 60 * NS_PER_S


def run_of(durations: tuple[int, ...], **fields: Any) -> Run:
    return sound_run(iterations=images(make_samples(durations)), **fields)


def found(kind: str, run: Run, *traces: ProcessTrace) -> Doubt:
    (doubt,) = [doubt for doubt in doubts(run, traces) if doubt.kind == kind]
    return doubt


def test_only_timed_images_count() -> None:
    run = sound_run(iterations=images(make_samples(noisy(4)), *observers([(1, 1)] * 9, start_boot_ns=END_NS)))
    assert "Timed images: 4" in found("too_few", run).detail
    assert kinds(run_of(noisy(5))) == []


@pytest.mark.parametrize(
    ("measurement", "told"), [(Measurement(kind="burst"), "--repeats 5"), (SUSTAINED, "--minutes was 0.5")]
)
def test_advice_on_too_few_depends_on_the_protocol(measurement: Measurement, told: str) -> None:
    assert told in found("too_few", run_of(noisy(3), measurement=measurement)).advice


def test_a_wide_interval_says_how_many_images_would_narrow_it() -> None:
    doubt = found("wide_interval", run_of(noisy(12, noise=0.25, seed=3)))
    assert "--repeats" in doubt.advice
    assert int(doubt.advice.rsplit(" ", 1)[1].rstrip(".")) > 12


def test_a_busy_device_is_not_to_be_measured_for_longer_but_left_alone() -> None:
    busy = trace(environment(other_cpu_percent=300.0))
    assert "Stop other work" in found("wide_interval", run_of(noisy(12, noise=0.25, seed=3)), busy).advice


def test_a_single_outlier_in_twenty_is_none_of_the_medians_business() -> None:
    assert kinds(run_of(noisy(20, factor=[1.0] * 10 + [3.0] + [1.0] * 9))) == []


@pytest.mark.parametrize(
    ("factor", "others", "told"),
    [
        ([3.0, 2.5] + [1.0] * 18, 0.0, "raise --warmups, which was 1"),
        ([1.0] * 8 + [3.0, 2.5] + [1.0] * 10, 0.0, "look for timers"),
        ([1.0] * 8 + [3.0, 2.5] + [1.0] * 10, 90.0, "Other work ran meanwhile"),
        ([1.0] * 18 + [1.3, 1.3], 0.0, "look for timers"),
    ],
)
def test_advice_on_outliers_depends_on_where_they_are_and_what_else_ran(
    factor: list[float], others: float, told: str
) -> None:
    run = run_of(noisy(20, factor=factor))
    doubt = found("outliers", run, trace(environment(other_cpu_percent=others)))
    assert "2 of 20 images" in doubt.detail
    assert told in doubt.advice


def test_a_device_that_slowed_down_has_two_speeds_and_no_outliers() -> None:
    assert "outliers" not in kinds(run_of(noisy(40, factor=[1.0] * 28 + [1.3] * 12)))


@pytest.mark.parametrize(("others", "told"), [(0.0, "something slowed most images down"), (90.0, "other work paused")])
def test_outliers_that_are_fast_are_what_the_device_can_do(others: float, told: str) -> None:
    run = run_of(noisy(20, factor=[1.0] * 8 + [0.5, 0.6] + [1.0] * 10))
    doubt = found("outliers", run, trace(environment(other_cpu_percent=others)))
    assert "2 of 20 images lie far from the median of 40" in doubt.detail
    assert told in doubt.advice


def test_images_that_get_faster_ask_for_as_many_more_warmups() -> None:
    doubt = found("warming", run_of(noisy(30, factor=[1.5] * 5 + [1.0] * 25)))
    assert "The first 5 timed images took" in doubt.detail
    assert "--warmups 6 or more" in doubt.advice


def test_half_a_run_is_no_warmup() -> None:
    doubt = found("warming", run_of(noisy(30, factor=[1.4] * 14 + [1.0] * 16)))
    assert "The last third of the images took 2" in doubt.detail
    assert "No warm-up lasts that long" in doubt.advice


def test_images_that_get_slower_are_not_warming() -> None:
    assert "warming" not in kinds(run_of(noisy(30, factor=[0.8] * 5 + [1.0] * 25)))


@pytest.mark.parametrize(
    ("factor", "kind", "told"),
    [
        (1.2, "spaced", "first image after idle clocks"),
        (0.8, "spaced", "faster when rested"),
        (1.2, "burst", "Something held the run up"),
    ],
)
def test_the_effect_of_a_pause_is_explained_by_protocol_and_sign(factor: float, kind: Any, told: str) -> None:
    rested = make_samples(tuple(round(factor * ns) for ns in noisy(8)), gap_ns=2 * NS_PER_S)
    pressed = observers([(ns, ns) for ns in noisy(8, seed=2)], start_boot_ns=END_NS)
    run = sound_run(
        iterations=images(rested, *pressed),
        measurement=Measurement(kind=kind, gap_s=2.0 if kind == "spaced" else None),
    )
    assert told in found("after_gap", run).advice


def test_a_pause_without_effect_is_no_doubt() -> None:
    rested = make_samples(noisy(8), gap_ns=2 * NS_PER_S)
    pressed = observers([(ns, ns) for ns in noisy(8, seed=2)], start_boot_ns=END_NS)
    assert kinds(sound_run(iterations=images(rested, *pressed))) == []


def test_sampling_that_costs_surely_more_than_a_per_cent_is_told() -> None:
    pairs = observers([(round(1.05 * ns), ns) for ns in noisy(10)], start_boot_ns=END_NS)
    doubt = found("observer_effect", sound_run(iterations=images(make_samples(noisy(6)), *pairs)))
    assert "lengthens an image by 5.0 %" in doubt.detail


def test_a_cost_that_may_be_nothing_is_no_doubt() -> None:
    wild = observers(list(zip(noisy(10, noise=0.1), noisy(10, noise=0.1, seed=9), strict=True)), start_boot_ns=END_NS)
    assert kinds(sound_run(iterations=images(make_samples(noisy(6)), *wild))) == []


def test_times_without_any_difference_are_a_clocks_and_not_a_devices() -> None:
    assert "All 20 images took exactly 400 ms" in found("coarse_clock", run_of((400_000_000,) * 20)).detail
    assert "coarse_clock" not in kinds(run_of((400_000_000,) * 4))
