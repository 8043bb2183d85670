"""Ratios of medians of two sets of samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.errors import InputError
from profiler.stats import ratio_of_medians

POSITIVE = st.lists(st.floats(1.0, 1e6), min_size=3, max_size=8)


def test_the_ratio_is_of_the_medians_and_not_of_the_means() -> None:
    ratio = ratio_of_medians([1.0, 4.0, 100.0], [1.0, 2.0, 2.0, 50.0])
    assert (ratio.ratio, ratio.n_above, ratio.n_below) == (2.0, 3, 4)


def test_three_on_each_side_have_an_interval_between_the_extreme_ratios() -> None:
    """All three resampled the same has chance 1/27 a side: within 2.5 % lie 2/3 and 4/1 only together with others."""
    interval = ratio_of_medians([2.0, 3.0, 4.0], [1.0, 2.0, 3.0]).ci95
    assert interval == pytest.approx((2 / 3, 4.0))


@pytest.mark.parametrize(("above", "below"), [([1.0, 2.0], [1.0, 2.0, 3.0]), ([1.0, 2.0, 3.0], [1.0, 2.0])])
def test_two_on_a_side_have_no_interval(above: list[float], below: list[float]) -> None:
    assert ratio_of_medians(above, below).ci95 is None


def test_equal_samples_have_an_interval_of_no_width() -> None:
    assert ratio_of_medians([3.0] * 4, [2.0] * 5).ci95 == (1.5, 1.5)


def test_samples_of_zero_below_the_line_leave_the_ratio_without_an_interval() -> None:
    ratio = ratio_of_medians([2.0, 2.0, 2.0], [0.0, 1.0, 1.0])
    assert (ratio.ratio, ratio.ci95) == (2.0, None)


def test_a_median_of_zero_below_the_line_is_refused() -> None:
    with pytest.raises(InputError, match="median of zero"):
        ratio_of_medians([1.0], [0.0, 0.0, 1.0])


def test_a_difference_of_a_tenth_is_seen_between_twenty_and_twenty() -> None:
    slow, fast = np.random.default_rng(1).lognormal(0.0, 0.03, (2, 20))
    interval = ratio_of_medians((1.1 * slow).tolist(), fast.tolist()).ci95
    assert interval is not None
    assert 1.0 < interval[0] < 1.1 < interval[1]


@given(POSITIVE, POSITIVE, st.sampled_from([0.5, 8.0]))
@settings(max_examples=15, deadline=None)
def test_the_unit_cancels_and_the_interval_holds_what_samples_can_give(
    above: list[float], below: list[float], factor: float
) -> None:
    ratio = ratio_of_medians(above, below)
    scaled = ratio_of_medians([factor * one for one in above], [factor * one for one in below])
    assert scaled == ratio
    assert ratio.ci95 is not None
    assert min(above) / max(below) <= ratio.ci95[0] <= ratio.ci95[1] <= max(above) / min(below)


def test_rounding_does_not_carry_the_interval_beyond_the_extreme_ratio() -> None:
    interval = ratio_of_medians([1.0, 1.0, 40538.013671875], [2.0, 2.0, 1.5]).ci95
    assert interval is not None
    assert interval[1] <= 40538.013671875 / 1.5
