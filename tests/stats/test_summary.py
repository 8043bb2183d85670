"""Summaries: what they say, what they refuse, and how well their intervals cover."""

from __future__ import annotations

import subprocess
import sys
from random import Random
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.series import noise, ticked
from profiler.errors import InputError
from profiler.stats import needed_n, paired_ratio, reachable_coverage, resolution, summarise

DURATIONS = st.lists(st.integers(0, 10**12), min_size=1, max_size=40)
POSITIVE = st.floats(1e-3, 1e12)


def test_one_sample_has_no_spread() -> None:
    summary = summarise([7.0])
    assert (summary.n, summary.median) == (1, 7.0)
    assert (summary.p25, summary.p75, summary.p90, summary.ci95) == (None, None, None, None)
    assert summary.ci_method == "none: n < 3"
    assert summary.ci_reachable_coverage == 0.0


def test_two_samples_have_quartiles_but_no_interval() -> None:
    summary = summarise([1.0, 2.0])
    assert (summary.p25, summary.median, summary.p75) == (1.25, 1.5, 1.75)
    assert (summary.ci95, summary.ci_method) == (None, "none: n < 3")


def test_three_samples_have_an_interval_that_says_how_little_it_can_cover() -> None:
    summary = summarise([3.0, 1.0, 2.0])
    assert summary.ci95 == (1.0, 3.0)
    assert summary.ci_method == "range of the samples"
    assert summary.ci_reachable_coverage == 0.75


@pytest.mark.parametrize(("n", "coverage"), [(1, 0.0), (2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375), (6, 0.96875)])
def test_the_reachable_coverage_is_that_of_the_range_of_the_samples(n: int, coverage: float) -> None:
    assert reachable_coverage(n) == coverage


@pytest.mark.parametrize("n", [3, 4, 5])
def test_the_reachable_coverage_agrees_with_drawing_samples(n: int) -> None:
    draws = np.random.default_rng(1).lognormal(0.0, 0.3, (20_000, n))
    covered = (draws.min(axis=1) <= 1.0) & (draws.max(axis=1) >= 1.0)
    assert covered.mean() == pytest.approx(reachable_coverage(n), abs=0.01)


def test_a_90th_percentile_needs_twenty_samples() -> None:
    assert summarise(list(range(19))).p90 is None
    assert summarise(list(range(20))).p90 == pytest.approx(17.1)


def test_quantiles_are_type_7_and_say_so() -> None:
    summary = summarise([10.0, 20.0, 30.0, 40.0])
    assert (summary.p25, summary.median, summary.p75) == (17.5, 25.0, 32.5)
    assert summary.quantile_method == "linear (type 7)"


def test_equal_samples_have_an_interval_of_no_width_and_say_why() -> None:
    summary = summarise([5.0] * 6)
    assert (summary.ci95, summary.ci_method) == ((5.0, 5.0), "all samples equal")


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "no samples"),
        ([1.0, float("nan")], "got nan"),
        ([1.0, float("inf")], "got inf"),
        ([1.0, -2.0], r"got -2\.0"),
        ([[1.0, 2.0]], "shape"),
    ],
)
def test_what_is_no_sample_is_refused(samples: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        summarise(samples)


def test_the_same_samples_give_the_same_interval() -> None:
    for samples in np.random.default_rng(2).lognormal(20.0, 0.1, (3, 500)).tolist():
        assert summarise(samples) == summarise(samples)


def test_the_interval_of_six_lies_between_those_of_97_and_78_per_cent() -> None:
    """1 − 2/64 = 0.96875 and 1 − 14/64 = 0.78125: a tenth of the way, which is 5 · 0.1 / (1 + 4 · 0.1) of a gap."""
    summary = summarise([6.0, 1.0, 5.0, 2.0, 4.0, 3.0])
    assert summary.ci95 == pytest.approx((1 + 5 / 14, 6 - 5 / 14))
    assert summary.ci_method == "interpolated order statistics"


def test_the_interval_of_ten_starts_from_the_second_and_the_ninth() -> None:
    """1 − 22/1024 and 1 − 112/1024: I = 28.5156 / 87.8906, and 8 I / (2 + 6 I) = 0.65766 of a gap."""
    assert summarise(list(range(1, 11))).ci95 == pytest.approx((2.65766, 8.34234), abs=1e-5)


@pytest.mark.parametrize("n", [6, 7, 9, 20])
@pytest.mark.parametrize("kind", ["normal", "wide log-normal"])
def test_an_interval_covers_as_often_as_it_says(n: int, kind: Literal["normal", "wide log-normal"]) -> None:
    intervals = [summarise(row).ci95 for row in noise(kind, 2000, n, np.random.default_rng(3)).tolist()]
    covered = sum(interval is not None and interval[0] <= 1.0 <= interval[1] for interval in intervals)
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


def test_an_interval_from_a_coarse_clock_covers_the_time_between_its_ticks() -> None:
    rows, medians = ticked(500, 50, np.random.default_rng(4))
    summaries = [summarise(row) for row in rows.tolist()]
    covered = [s.ci95 is not None and s.ci95[0] <= m <= s.ci95[1] for s, m in zip(summaries, medians, strict=True)]
    assert sum(covered) / 500 >= 0.94
    assert {s.ci_method for s in summaries} == {"interpolated order statistics, and half a clock tick"}


def test_an_interval_from_a_coarse_clock_does_not_go_below_zero() -> None:
    assert summarise([0.0] * 8 + [1.0]).ci95 == (0.0, 0.5)


def test_the_samples_needed_grow_with_the_square_of_the_precision() -> None:
    """Six samples of 1 to 6: half-width 2.142857 on 3.5, so 6 · (2.142857 / 0.35)² = 224.9 for a tenth."""
    samples = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert needed_n(samples, 0.1) == 225
    assert needed_n(samples, 0.05) == 900


def test_the_samples_needed_are_at_least_those_of_a_95_per_cent_interval() -> None:
    assert needed_n([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 1000.0) == 6


@pytest.mark.parametrize("samples", [[1.0], [1.0, 2.0], [0.0, 0.0, 0.0]])
def test_without_an_interval_or_a_median_nothing_tells_what_is_needed(samples: list[float]) -> None:
    assert needed_n(samples, 0.01) is None


@pytest.mark.parametrize("share", [0.0, -0.1, float("nan")])
def test_a_share_of_nothing_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="above zero"):
        needed_n([1.0, 2.0, 3.0], share)


def test_the_samples_needed_are_about_those_that_then_suffice() -> None:
    """For a normal median 1.253 · 1.96 · σ / √n is the half-width: 2.456 · 0.2 / 0.05 squared is 97 for 5 %."""
    random = np.random.default_rng(5)
    needed = [needed_n(row, 0.05) for row in noise("wide log-normal", 400, 20, random).tolist()]
    assert np.median([n for n in needed if n is not None]) == pytest.approx(97, rel=0.2)


@given(DURATIONS)
@settings(max_examples=40, deadline=None)
def test_a_summary_is_ordered_and_within_its_samples(samples: list[int]) -> None:
    summary = summarise(samples)
    low, high = summary.ci95 or (summary.median, summary.median)
    tick = resolution(samples) or 0.0
    assert min(samples) - tick / 2 <= low <= summary.median <= high <= max(samples) + tick / 2
    if summary.p25 is not None and summary.p75 is not None:
        assert min(samples) <= summary.p25 <= summary.median <= summary.p75 <= max(samples)
    if summary.p90 is not None and summary.p75 is not None:
        assert summary.p75 <= summary.p90 <= max(samples)


@given(DURATIONS, st.randoms())
@settings(max_examples=30, deadline=None)
def test_the_order_of_samples_changes_nothing(samples: list[int], random: Random) -> None:
    shuffled = samples.copy()
    random.shuffle(shuffled)
    one, other = summarise(samples), summarise(shuffled)
    assert one == other


@given(st.lists(POSITIVE, min_size=1, max_size=20), st.floats(1.0, 4.0))
@settings(max_examples=30, deadline=None)
def test_a_constant_factor_is_the_ratio_whatever_drifts(samples: list[float], factor: float) -> None:
    ratio = paired_ratio([sample * factor for sample in samples], samples)
    assert ratio.median == pytest.approx(factor)
    assert ratio.n == len(samples)


def test_pairs_cancel_a_drift_that_would_drown_the_effect() -> None:
    off = [100.0, 140.0, 180.0, 240.0, 300.0, 390.0]
    noise = [1.00, 1.01, 0.99, 1.02, 1.00, 0.99]
    ratio = paired_ratio([1.05 * sample * wobble for sample, wobble in zip(off, noise, strict=True)], off)
    assert ratio.ci95 is not None
    assert ratio.ci95[0] > 1.0
    assert ratio.median == pytest.approx(1.05, abs=0.01)


@pytest.mark.parametrize(
    ("above", "below", "message"),
    [([1.0], [1.0, 2.0], "got 1 and 2"), ([1.0], [0.0], "sample of zero"), ([], [], "no samples")],
)
def test_pairs_that_are_none_are_refused(above: list[float], below: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        paired_ratio(above, below)


def test_importing_the_module_does_not_wait_for_scipy() -> None:
    code = "import sys, profiler.stats; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
