"""What `dumpsys batterystats --charged --checkin` says reliably: how long on battery, and the modelled use by app.

These are the system's estimates from a power profile, not measurements: too coarse for the energy of one image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from profiler.devices.android.numerals import decimal, integer
from profiler.devices.android.unavailable import Unavailable, refused

COMMAND = "dumpsys batterystats --charged --checkin"


class BatteryStats(NamedTuple):
    """The estimates since the last full charge; None where the phone does not print them."""

    version: int
    on_battery_ms: int | None
    screen_off_ms: int | None
    capacity_microamperehours: int | None
    modelled_use_microamperehours: int | None
    modelled_use_microamperehours_by_uid: dict[int, int]
    packages_by_uid: dict[int, tuple[str, ...]]


def read_batterystats(text: str) -> BatteryStats | Unavailable:
    """Read the checkin lines `version,uid,kind,section,…`."""
    rows = list(_rows(text))
    if not rows:
        return Unavailable(refused(text) or "no checkin lines in what dumpsys batterystats printed", text)
    battery = _first(rows, "bt")
    power = _first(rows, "pws")
    return BatteryStats(
        version=integer(rows[0][0]) or 0,
        on_battery_ms=_milliseconds(battery, 1),
        screen_off_ms=_milliseconds(battery, 6),
        capacity_microamperehours=_microamperehours(power, 0),
        modelled_use_microamperehours=_microamperehours(power, 1),
        modelled_use_microamperehours_by_uid=dict(_use_by_uid(rows)),
        packages_by_uid=_packages(rows),
    )


def _rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        row = line.strip().split(",")
        if len(row) >= 4 and integer(row[0]) is not None and integer(row[1]) is not None and row[2] in ("i", "l"):
            yield row


def _first(rows: list[list[str]], section: str) -> list[str]:
    """Return the values of the first row of a section, empty where there is none."""
    return next((row[4:] for row in rows if row[2] == "l" and row[3] == section), [])


def _milliseconds(values: list[str], at: int) -> int | None:
    value = integer(values[at]) if at < len(values) else None
    return None if value is None or value < 0 else value


def _microamperehours(values: list[str], at: int) -> int | None:
    """Return µAh of a number of mAh; a capacity of 0 is one that nobody entered in the power profile."""
    value = decimal(values[at]) if at < len(values) else None
    return None if value is None or value < 0 or (at == 0 and value == 0) else round(value * 1000)


def _use_by_uid(rows: list[list[str]]) -> Iterator[tuple[int, int]]:
    for row in rows:
        uid = integer(row[1])
        if row[2:5] == ["l", "pwi", "uid"] and uid is not None:
            use = _microamperehours(["", *row[5:]], 1)
            if use is not None:
                yield uid, use


def _packages(rows: list[list[str]]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for row in rows:
        uid = integer(row[4]) if row[2:4] == ["i", "uid"] and len(row) > 5 else None
        if uid is not None:
            found[uid] = (*found.get(uid, ()), row[5])
    return found
