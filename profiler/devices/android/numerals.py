"""Numbers as phones print them: other languages' digits, decimal commas, NaN, and garbage."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

# Longer ones overflow every counter that a phone has, and Python refuses to convert thousands of digits.
_INTEGER = re.compile(r"[+-]?\d{1,19}")
_DECIMAL = re.compile(r"[+-]?\d{1,19}(?:[.,٫]\d{1,19})?(?:[eE][+-]?\d{1,3})?")


def integer(text: str | None) -> int | None:
    """Return a whole number in any script's digits; None where `text` is something else."""
    stripped = (text or "").strip()
    return int(stripped) if _INTEGER.fullmatch(stripped) else None


def decimal(text: str | None) -> Decimal | None:
    """Return a finite number, with a point or a comma before its fraction; None where `text` is something else."""
    stripped = (text or "").strip()
    if not _DECIMAL.fullmatch(stripped):
        return None
    value = Decimal(stripped.replace(",", ".").replace("٫", "."))
    # Beyond that, Decimal cannot compute and no gauge reads.
    return value if value == 0 or abs(value.adjusted()) <= 20 else None


def number(text: str | None) -> float | None:
    """Return a finite number as a float; None for NaN, infinity and whatever is no number."""
    value = decimal(text)
    as_float = math.nan if value is None else float(value)
    return as_float if math.isfinite(as_float) else None


def truth(text: str | None) -> bool | None:
    """Return what `true`, `false`, `1` or `0` says; None for anything else."""
    return {"true": True, "false": False, "1": True, "0": False}.get((text or "").strip().lower())


def first_of(fields: Mapping[str, str], *names: str) -> str | None:
    """Return the field under the first of `names` that is there, exact spelling before another case."""
    for name in names:
        if name in fields:
            return fields[name]
    lowered = {name.lower() for name in names}
    return next((value for name, value in fields.items() if name.lower() in lowered), None)


def fields_of(lines: Iterable[str], separator: str = ":") -> dict[str, str]:
    """Return `name: value` lines as a mapping in which the first of several equal names wins."""
    fields: dict[str, str] = {}
    for line in lines:
        name, found, value = line.partition(separator)
        if found and name.strip():
            fields.setdefault(name.strip(), value.strip())
    return fields
