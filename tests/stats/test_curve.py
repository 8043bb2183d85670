"""The curve of a sustained run: equal slices of time, each with its median and quartiles."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiler.errors import InputError
from profiler.records.summary import CurvePoint
from profiler.stats import curve


def test_a_slice_sums_up_the_images_that_began_in_it() -> None:
    points = curve([0.0, 1.0, 2.0, 3.0, 4.0, 6.0], [10.0, 11.0, 12.0, 20.0, 22.0, 21.0], slices=2)
    assert points == (
        CurvePoint(start_s=0.0, end_s=3.0, n=3, median_ns=11.0, p25_ns=10.5, p75_ns=11.5),
        CurvePoint(start_s=3.0, end_s=6.0, n=3, median_ns=21.0, p25_ns=20.5, p75_ns=21.5),
    )


def test_time_runs_from_the_first_image() -> None:
    points = curve([1000.0 + place for place in range(9)], [5.0] * 9, slices=2)
    assert [(point.start_s, point.end_s) for point in points] == [(0.0, 4.0), (4.0, 8.0)]


def test_an_empty_slice_is_left_out_and_one_image_has_no_quartiles() -> None:
    points = curve([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 300.0], [1.0] * 9)
    assert [(point.start_s, point.n, point.p25_ns) for point in points] == [(0.0, 8, 1.0), (200.0, 1, None)]


@pytest.mark.parametrize(("images", "slices"), [(1, 1), (5, 1), (6, 2), (35, 11), (36, 12), (1000, 12)])
def test_a_slice_holds_three_images_on_average(images: int, slices: int) -> None:
    assert len(curve([float(place) for place in range(images)], [1.0] * images)) == slices


def test_images_that_began_at_once_are_one_slice() -> None:
    assert [point.n for point in curve([3.0] * 30, [1.0] * 30)] == [30]


@given(st.lists(st.tuples(st.floats(0, 1e5), st.integers(0, 10**12)), min_size=1, max_size=60), st.integers(1, 20))
@settings(max_examples=50, deadline=None)
def test_every_image_is_in_one_slice(images: list[tuple[float, int]], slices: int) -> None:
    points = curve([start for start, _ in images], [duration for _, duration in images], slices)
    assert sum(point.n for point in points) == len(images)
    assert len(points) <= slices
    assert [point.start_s for point in points] == sorted(point.start_s for point in points)


@pytest.mark.parametrize(
    ("starts", "durations", "message"),
    [([], [], "no samples"), ([0.0], [1.0, 2.0], "2 durations and 1 starts"), ([0.0], [float("nan")], "got nan")],
)
def test_what_is_no_run_is_refused(starts: list[float], durations: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        curve(starts, durations)
