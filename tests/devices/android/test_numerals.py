from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.devices.android.numerals import decimal, fields_of, first_of, integer, number, truth


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), (" -7 ", -7), ("+3", 3), ("٣٠٩", 309), ("1_000", None), ("²", None), ("9" * 20, None)],
)
def test_a_whole_number_is_read_in_any_scripts_digits(text: str, value: int | None) -> None:
    assert integer(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("25,6", "25.6"), ("٢٥٫٦", "25.6"), ("1.2E3", "1200"), ("NaN", None), ("inf", None), ("1.2.3", None), ("", None)],
)
def test_a_decimal_has_a_point_or_a_comma(text: str, value: str | None) -> None:
    assert decimal(text) == (None if value is None else Decimal(value))


def test_missing_text_is_no_number() -> None:
    assert (integer(None), decimal(None), number(None), truth(None)) == (None, None, None, None)


@given(st.text())
def test_no_text_raises(text: str) -> None:
    value = decimal(text)
    assert value is None or value % 1 is not None
    assert number(text) is None or isinstance(number(text), float)
    assert integer(text) is None or isinstance(integer(text), int)


@given(st.from_regex(r"\A[+-]?\d{1,22}([.,]\d{1,22})?([eE][+-]?\d{1,4})?\Z"))
def test_no_number_is_too_large_to_compute_with(text: str) -> None:
    value = decimal(text)
    assert value is None or (value % 1 is not None and round(value * 1000) is not None)


def test_the_first_of_equal_names_wins_and_the_exact_case_before_another() -> None:
    fields = fields_of(["a: 1", "A: 2", "a: 3", "no separator", ": nameless"])
    assert fields == {"a": "1", "A": "2"}
    assert first_of(fields, "A") == "2"
    assert first_of({"a": "1"}, "A") == "1"
    assert first_of(fields, "b") is None
