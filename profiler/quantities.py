"""Units, and the one place where numbers become text for people."""

from __future__ import annotations

import itertools

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
KIB = 1024
MIB = 1024**2
GIB = 1024**3


_TIME_UNITS = (("ns", 1), ("µs", NS_PER_US), ("ms", NS_PER_MS), ("s", NS_PER_S))
_SIZE_UNITS = (("B", 1), ("KiB", KIB), ("MiB", MIB), ("GiB", GIB))
_COUNT_UNITS = (("", 1), ("K", 10**3), ("M", 10**6), ("B", 10**9))


def format_ns(duration_ns: float | None) -> str:
    """Write a duration with three significant digits in the unit that suits, for example ``3.22 s``."""
    return "unknown" if duration_ns is None else _in_unit(duration_ns, _TIME_UNITS)


def format_bytes(size_bytes: float | None) -> str:
    """Write a size in binary units, for example ``1.63 GiB``."""
    return "unknown" if size_bytes is None else _in_unit(size_bytes, _SIZE_UNITS)


def format_count(number: int | None) -> str:
    """Write a number of parameters as publications do, for example ``2.52 B``."""
    return "unknown" if number is None else _in_unit(number, _COUNT_UNITS).rstrip()


def _in_unit(value: float, units: tuple[tuple[str, int], ...]) -> str:
    """Choose the smallest unit whose number, as it will be shown, does not reach one of the next unit."""
    for (unit, divisor), (_, larger) in itertools.pairwise(units):
        digits = _three_digits(value / divisor)
        if abs(float(digits)) * divisor < larger:
            return f"{digits} {unit}"
    unit, divisor = units[-1]
    return f"{_three_digits(value / divisor)} {unit}"


def _three_digits(value: float) -> str:
    if value % 1 == 0:
        return f"{value:.0f}"
    decimals = next(n for n in (2, 1, 0) if n == 0 or abs(round(value, n)) < 10 ** (3 - n))
    return f"{value:.{decimals}f}"
