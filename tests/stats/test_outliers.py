"""Outliers by the modified z-score, worked by hand."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.errors import InputError
from profiler.stats import outliers

SAMPLES = st.lists(st.integers(0, 10**9), min_size=1, max_size=40)


def test_a_sample_is_far_beyond_three_and_a_half_deviations() -> None:
    """Median 13, MAD 2: 0.6745 · 10 / 2 = 3.37 and 0.6745 · 11 / 2 = 3.71."""
    assert outliers([10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 23.0]) == ()
    assert outliers([10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 24.0]) == (6,)


def test_where_most_are_equal_the_mean_deviation_stands_in() -> None:
    """MAD 0. Mean deviation 4/6: 4 / (1.2533 · 0.667) = 4.79; with two of five it is 1.6 and 4 / 2.005 = 1.99."""
    assert outliers([5.0, 9.0, 5.0, 5.0, 5.0, 5.0]) == (1,)
    assert outliers([5.0, 9.0, 5.0, 5.0, 9.0]) == ()


def test_both_sides_are_told_in_order() -> None:
    assert outliers([100.0, 10.0, 11.0, 12.0, 10.0, 11.0, 12.0, 0.0]) == (0, 7)


def test_equal_samples_have_no_outliers() -> None:
    assert outliers([7.0] * 20) == ()


def test_among_four_samples_none_is_called_an_outlier() -> None:
    assert outliers([1.0, 1.1, 1.2, 50.0]) == ()
    assert outliers([1.0, 1.1, 1.2, 1.3, 50.0]) == (4,)


@given(SAMPLES, st.sampled_from([0.25, 2.0, 2.0**50, 2.0**-50]))
@settings(max_examples=50, deadline=None)
def test_the_unit_does_not_matter(samples: list[int], factor: float) -> None:
    assert outliers([sample * factor for sample in samples]) == outliers(samples)


@given(SAMPLES, st.randoms())
@settings(max_examples=50, deadline=None)
def test_the_order_does_not_matter(samples: list[int], random: Random) -> None:
    shuffled = samples.copy()
    random.shuffle(shuffled)
    assert sorted(shuffled[place] for place in outliers(shuffled)) == sorted(
        samples[place] for place in outliers(samples)
    )


@given(SAMPLES)
@settings(max_examples=50, deadline=None)
def test_at_most_half_are_far_from_the_rest(samples: list[int]) -> None:
    assert len(outliers(samples)) <= len(samples) / 2


@pytest.mark.parametrize("samples", [[], [1.0, float("inf")], [-1.0]])
def test_what_is_no_sample_is_refused(samples: list[float]) -> None:
    with pytest.raises(InputError):
        outliers(samples)
