"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.quantities import GIB, KIB, MIB, NS_PER_MS, NS_PER_S, NS_PER_US, format_bytes, format_count, format_ns

TIME_UNITS = {"ns": 1, "µs": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S}
SIZE_UNITS = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1500, "1.50 µs"),
        (3_220_000_000, "3.22 s"),
        (3_000_000_000, "3 s"),
        (20_000_000_000, "20 s"),
        (12_340_000_000, "12.3 s"),
        (123_400_000_000, "123 s"),
        (-3_220_000_000, "-3.22 s"),
    ],
)
def test_a_duration_reads_as_a_person_would_write_it(duration_ns: int, text: str) -> None:
    assert format_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [(999_960, "1.00 ms"), (999_999_999, "1.00 s"), (9_999_000_000, "10.0 s"), (99_960_000_000, "100 s")],
)
def test_rounding_up_never_shows_a_fourth_digit_or_a_thousand_of_a_unit(duration_ns: int, text: str) -> None:
    assert format_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (MIB - 1, "1.00 MiB"),
        (1_750_199_337, "1.63 GiB"),
        (2 * GIB, "2 GiB"),
    ],
)
def test_a_size_reads_in_binary_units(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


def test_a_missing_value_is_unknown_and_not_zero() -> None:
    assert format_ns(None) == format_bytes(None) == "unknown"


@given(st.integers(-(10**15), 10**15))
def test_a_duration_reads_back_to_within_half_of_its_last_digit(duration_ns: int) -> None:
    number, unit = format_ns(duration_ns).split()
    assert float(number) * TIME_UNITS[unit] == pytest.approx(duration_ns, rel=0.0051)


@given(st.integers(0, 10**13))
def test_a_size_reads_back_to_within_half_of_its_last_digit(size_bytes: int) -> None:
    number, unit = format_bytes(size_bytes).split()
    assert float(number) * SIZE_UNITS[unit] == pytest.approx(size_bytes, rel=0.0051)


@given(st.floats(0, 1e14))
def test_only_the_largest_unit_counts_a_thousand_or_more(duration_ns: float) -> None:
    number, unit = format_ns(duration_ns).split()
    assert unit == "s" or float(number) < 1000


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (7, "7"),
        (999, "999"),
        (2_445_063, "2.45 M"),
        (999_999_999, "1.00 B"),
        (2_519_945_483, "2.52 B"),
        (None, "unknown"),
    ],
)
def test_parameters_are_counted_as_publications_do(number: int | None, text: str) -> None:
    assert format_count(number) == text
