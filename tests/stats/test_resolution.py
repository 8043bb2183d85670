"""Coarse clocks, told from the samples."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.series import noise, ticked
from profiler.errors import InputError
from profiler.stats import resolution


def test_the_step_is_the_smallest_difference() -> None:
    assert resolution([50e6, 51e6, 50e6, 53e6, 51e6]) == 1e6


def test_a_tick_that_is_no_whole_number_is_found() -> None:
    assert resolution([0.1, 0.2, 0.30000000000000004, 0.2, 0.1]) == pytest.approx(0.1)
    assert resolution([15.625 * count for count in (3, 3, 4, 4, 7)]) == 15.625


@pytest.mark.parametrize(
    "samples",
    [
        [7.0],
        [5.0] * 20,
        [1.0, 1.0, 2.0, 3.0],
        [1.0, 1.0, 1.0, 2.0, 3.5],
        [50_000_123.0, 50_000_123.0, 50_917_221.0, 50_917_221.0, 49_811_007.0, 51_300_450.0],
    ],
    ids=["one", "equal", "one repeated", "no multiples", "chance repeats"],
)
def test_what_shows_no_ticks_has_no_resolution(samples: list[float]) -> None:
    assert resolution(samples) is None


def test_twenty_samples_show_ticks_of_a_millisecond() -> None:
    rows = 1e6 * ticked(500, 20, np.random.default_rng(1))[0]
    assert {resolution(row) for row in rows.tolist()} == {1e6}


@pytest.mark.parametrize("n", [20, 10_000])
def test_nanoseconds_are_not_ticks(n: int) -> None:
    rows = np.round(50e6 * noise("normal", 20, n, np.random.default_rng(2)))
    assert {resolution(row) for row in rows.tolist()} == {None}


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.sampled_from([0.125, 4.0, 2.0**30]), st.randoms())
@settings(max_examples=50, deadline=None)
def test_the_step_goes_with_the_unit_and_not_with_the_order(samples: list[int], factor: float, random: Random) -> None:
    found = resolution(samples)
    shuffled = [factor * sample for sample in samples]
    random.shuffle(shuffled)
    assert resolution(shuffled) == (None if found is None else factor * found)


@pytest.mark.parametrize("samples", [[], [float("nan")], [-1.0, 1.0]])
def test_what_is_no_sample_is_refused(samples: list[float]) -> None:
    with pytest.raises(InputError):
        resolution(samples)
