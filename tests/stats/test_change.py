"""Trends and slow starts: what they are worked by hand, and how often they are found or falsely raised."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.series import Change, Noise, change, noise
from profiler.errors import InputError
from profiler.stats import Trend, outliers, steady_from, trend

SERIES = st.lists(st.integers(1, 10**6), min_size=1, max_size=40)
POWERS_OF_TWO = st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**40])


def _trends(kind: Noise, goes: Change, n: int, trials: int = 1000) -> list[Trend]:
    random = np.random.default_rng(1)
    return [trend(row) for row in (noise(kind, trials, n, random) * change(goes, trials, n, random)).tolist()]


def test_a_step_is_found_where_it_is() -> None:
    found = trend([10.0, 11.0, 10.0, 11.0, 10.0, 20.0, 21.0, 20.0, 21.0])
    assert (found.ratio, found.slower, found.faster, found.change_at) == (2.1, True, False, 5)


def test_a_fall_is_the_other_direction() -> None:
    found = trend([21.0, 20.0, 21.0, 20.0, 10.0, 11.0, 10.0, 11.0, 10.0])
    assert (found.ratio, found.slower, found.faster, found.change_at) == (10 / 21, False, True, 4)


def test_a_steady_series_has_no_place_of_change() -> None:
    found = trend([10.0, 11.0, 12.0] * 10)
    assert (found.ratio, found.slower, found.faster, found.change_at) == (1.0, False, False, None)


def test_a_clear_change_below_a_per_cent_is_left_alone() -> None:
    found = trend([1000.0 + 0.2 * place for place in range(30)])
    assert found.p_slower < 1e-6
    assert (found.slower, found.change_at) == (False, None)


@pytest.mark.parametrize("samples", [[1.0], [1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [5.0] * 30])
def test_few_or_equal_samples_tell_no_trend(samples: list[float]) -> None:
    found = trend(samples)
    assert (found.p_slower, found.p_faster, found.slower, found.faster) == (1.0, 1.0, False, False)


def test_a_stray_sample_at_the_wrong_end_hides_no_slowdown() -> None:
    steps = np.where(np.arange(30) < 15, 1.0, 1.1) * (1 + 0.01 * (np.arange(30) % 3))
    steps[2] = 30.0
    assert trend(steps.tolist()).slower


def test_a_late_step_in_a_quiet_series_is_not_taken_for_outliers() -> None:
    samples = [1.0 + 0.001 * (place % 2) + 0.1 * (place >= 20) for place in range(30)]
    assert trend(samples).slower


def test_a_ratio_to_zero_is_refused() -> None:
    with pytest.raises(InputError, match="median of zero"):
        trend([0.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("kind", ["normal", "log-normal", "outliers"])
@pytest.mark.parametrize("goes", ["step", "drift"])
def test_a_slowdown_of_a_tenth_is_found_in_thirty_samples(kind: Noise, goes: Change) -> None:
    assert sum(found.slower for found in _trends(kind, goes, 30)) >= 985


@pytest.mark.parametrize("kind", ["normal", "log-normal", "outliers"])
@pytest.mark.parametrize("n", [30, 60])
def test_a_steady_series_seldom_raises_an_alarm(kind: Noise, n: int) -> None:
    steady = _trends(kind, "none", n)
    assert sum(found.slower for found in steady) <= 18
    assert sum(found.faster for found in steady) <= 18


@given(SERIES, POWERS_OF_TWO)
@settings(max_examples=40, deadline=None)
def test_the_unit_changes_neither_trend_nor_start(samples: list[int], factor: float) -> None:
    scaled = [factor * sample for sample in samples]
    assert trend(scaled) == trend(samples)
    assert steady_from(scaled) == steady_from(samples)


@given(SERIES)
@settings(max_examples=40, deadline=None)
def test_backwards_is_the_other_direction(samples: list[int]) -> None:
    there, back = trend(samples), trend(samples[::-1])
    assert back.p_faster == pytest.approx(there.p_slower, abs=1e-9)
    assert back.ratio == pytest.approx(1 / there.ratio)


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_any_samples_have_a_trend_and_a_start(samples: list[float]) -> None:
    found = trend(samples)
    assert 0 <= found.p_slower <= 1
    assert not (found.slower and found.faster)
    assert found.change_at is None or 0 < found.change_at < len(samples)
    assert 0 <= steady_from(samples) <= len(samples) // 2


def test_one_slow_first_image_of_twenty_is_a_slow_start() -> None:
    rows = noise("log-normal", 200, 20, np.random.default_rng(2))
    rows[:, 0] *= 1.3
    starts = [steady_from(row) for row in rows.tolist()]
    assert 0 not in starts
    assert starts.count(1) >= 190


def test_a_start_too_near_for_outliers_is_found_by_ranks() -> None:
    samples = [1.06, 1.07, 1.08, 1.06, 1.07, *(1.0 + 0.01 * (place % 6) for place in range(15))]
    assert outliers(samples) == ()
    assert steady_from(samples) == 5


def test_a_slow_start_is_never_more_than_half() -> None:
    assert steady_from([2.0] * 14 + [1.0 + 0.001 * place for place in range(6)]) <= 10


def test_a_fast_start_is_not_a_slow_one() -> None:
    assert steady_from([0.5, *(1.0 + 0.01 * (place % 4) for place in range(19))]) == 0
    assert steady_from([0.9] * 8 + [1.0 + 0.01 * (place % 4) for place in range(12)]) == 0


def test_a_slow_start_below_two_per_cent_is_left_alone() -> None:
    quiet = [1000.0 + place % 4 for place in range(15)]
    assert steady_from([1015.0] * 5 + quiet) == 0
    assert steady_from([1030.0] * 5 + quiet) == 5


def test_fewer_than_eight_samples_are_steady() -> None:
    assert steady_from([9.0, 1.0, 1.1, 1.2, 1.0, 1.1, 1.2]) == 0
    assert steady_from([9.0, 1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.0]) == 1


@pytest.mark.parametrize(("kind", "n"), [("normal", 8), ("normal", 20), ("log-normal", 60), ("wide log-normal", 30)])
def test_a_steady_series_seldom_has_a_slow_start(kind: Noise, n: int) -> None:
    rows = noise(kind, 1000, n, np.random.default_rng(3)).tolist()
    assert sum(steady_from(row) > 0 for row in rows) <= 25


@pytest.mark.parametrize("samples", [[], [1.0, float("nan")], [1.0, -1.0]])
def test_what_is_no_sample_is_refused(samples: list[float]) -> None:
    for ask in (trend, steady_from):
        with pytest.raises(InputError):
            ask(samples)
