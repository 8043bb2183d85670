"""What a phone says about its battery: `dumpsys battery` and the kernel's power supply files.

Versions and vendors differ in names, units and extras (Android 4 to 16, Samsung, Xiaomi). A unit is taken from the
number only where no other one is physically possible; a current is never more than a raw number, since its unit and
its sign differ between phones and only a calibration tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple

from profiler.devices.android.numerals import decimal, fields_of, first_of, integer, number, truth
from profiler.devices.android.unavailable import Faked, Unavailable, refused

COMMAND = "dumpsys battery"
POWER_SUPPLY_COMMAND = "cat /sys/class/power_supply/battery/uevent"
RESET_COMMAND = "adb shell dumpsys battery reset"

_STATUSES = {1: "unknown", 2: "charging", 3: "discharging", 4: "not charging", 5: "full"}
_HEALTHS = {1: "unknown", 2: "good", 3: "overheat", 4: "dead", 5: "over voltage", 6: "failure", 7: "cold"}
_SOURCES = {"AC powered": "ac", "USB powered": "usb", "Wireless powered": "wireless", "Dock powered": "dock"}
# One lithium cell, or two in a row as in some folding phones; and what a phone's battery survives.
_MILLIVOLTS = (Decimal(2000), Decimal(10_000))
_CELSIUS = (Decimal(-30), Decimal(100))
_CAPACITY_MICROAMPEREHOURS = (300_000, 30_000_000)


class Battery(NamedTuple):
    """One reading; None is missing, and `missing` says why where the phone said something that is no reading.

    `level_percent` is 0–100. `powered_by` names the sources that feed the phone, empty on battery alone.
    `current_raw` is the system's own number, of unknown unit and sign.
    """

    level_percent: float | None
    external_power: bool | None
    powered_by: tuple[str, ...] | None
    status: str | None
    health: str | None
    present: bool | None
    voltage_millivolts: int | None
    temperature_millicelsius: int | None
    charge_counter_microamperehours: int | None
    current_raw: int | None
    technology: str | None
    missing: dict[str, str]


def read_battery(text: str) -> Battery | Faked | Unavailable:
    """Read what `dumpsys battery` printed; a state that somebody froze or set is `Faked`."""
    lines = text.splitlines()
    if "updates stopped" in text.lower():
        return Faked("the battery's state", RESET_COMMAND, text)
    fields = fields_of(_state_lines(lines))
    if integer(first_of(fields, "level")) is None and first_of(fields, "status", "voltage") is None:
        return Unavailable(refused(text) or "no battery state in what dumpsys battery printed", text)
    return _battery(fields)


def read_power_supply(text: str) -> Battery | Unavailable:
    """Read `/sys/class/power_supply/battery/uevent`: POWER_SUPPLY_NAME=value lines."""
    fields = {
        name.strip().removeprefix("POWER_SUPPLY_"): value
        for name, value in fields_of(text.splitlines(), "=").items()
        if name.startswith("POWER_SUPPLY_")
    }
    if not fields:
        return Unavailable(refused(text) or "no POWER_SUPPLY_ lines", text)
    missing: dict[str, str] = {}
    level = _percent(fields.get("CAPACITY"), "100", missing)
    return Battery(
        level_percent=level,
        external_power=None,
        powered_by=None,
        status=_word(fields.get("STATUS")),
        health=_word(fields.get("HEALTH")),
        present=truth(fields.get("PRESENT")),
        voltage_millivolts=_voltage(fields.get("VOLTAGE_NOW"), missing),
        temperature_millicelsius=_temperature(fields.get("TEMP"), missing),
        charge_counter_microamperehours=_charge(
            first_of(fields, "CHARGE_COUNTER", "CHARGE_NOW", "CHARGE_NOW_RAW"), level, missing
        ),
        current_raw=_current(fields.get("CURRENT_NOW"), missing),
        technology=fields.get("TECHNOLOGY") or None,
        missing=missing,
    )


def _state_lines(lines: Iterable[str]) -> Iterable[str]:
    """Yield the lines of the state proper: what follows a blank line or a bracket is a log (Samsung)."""
    started = False
    for line in lines:
        if started and (not line.strip() or line.lstrip().startswith("[")):
            return
        started = started or bool(line.partition(":")[2].strip())
        if not line.lstrip().startswith("["):
            yield line


def _battery(fields: Mapping[str, str]) -> Battery:
    missing: dict[str, str] = {}
    powered_by = _powered_by(fields)
    level = _percent(first_of(fields, "level"), first_of(fields, "scale"), missing)
    return Battery(
        level_percent=level,
        external_power=None if powered_by is None else bool(powered_by),
        powered_by=powered_by,
        status=_named(first_of(fields, "status"), _STATUSES),
        health=_named(first_of(fields, "health"), _HEALTHS),
        present=truth(first_of(fields, "present")),
        voltage_millivolts=_voltage(first_of(fields, "voltage"), missing),
        temperature_millicelsius=_temperature(first_of(fields, "temperature"), missing),
        charge_counter_microamperehours=_charge(first_of(fields, "Charge counter"), level, missing),
        current_raw=_current(first_of(fields, "current now", "Current now", "current_now"), missing),
        technology=first_of(fields, "technology") or None,
        missing=missing,
    )


def _powered_by(fields: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the sources that are on; None where not one line tells."""
    states = {source: truth(first_of(fields, name)) for name, source in _SOURCES.items()}
    if all(state is None for state in states.values()):
        return None
    return tuple(source for source, state in states.items() if state)


def _percent(level: str | None, scale: str | None, missing: dict[str, str]) -> float | None:
    value, whole = number(level), 100.0 if scale is None else number(scale)
    if value is None:
        return None
    if not whole or not 0 <= value <= whole:
        missing["level_percent"] = f"level {level} of {scale} is no share of a charge"
        return None
    return 100 * value / whole


def _voltage(text: str | None, missing: dict[str, str]) -> int | None:
    """Return millivolts from millivolts, microvolts or decimal volts; whole volts are too coarse to be a reading."""
    value = decimal(text)
    if value is None:
        return None
    if value % 1 == 0 and _MILLIVOLTS[0] <= value * 1000 <= _MILLIVOLTS[1]:
        missing["voltage_millivolts"] = f"voltage {text} is in whole volts: too coarse"
        return None
    volts = [Decimal(1000)] if value % 1 else []
    units = [Decimal(1), Decimal("0.001"), *volts]
    return _only_one([value * unit for unit in units], _MILLIVOLTS, "voltage_millivolts", f"voltage {text}", missing)


def _temperature(text: str | None, missing: dict[str, str]) -> int | None:
    """Return milli-°C from tenths of a °C, or from °C with a fraction.

    Some phones print whole °C: 26 may be 26 °C or, as Android documents it, 2.6 °C. That is no reading. Nor is 0.
    """
    value = decimal(text)
    if value is None:
        return None
    if value == 0:
        missing["temperature_millicelsius"] = "temperature 0 is what a missing sensor reads"
        return None
    units = [Decimal(1)] if value % 1 else [Decimal("0.1"), Decimal(1)]
    celsius = [value * unit for unit in units]
    return _only_one(celsius, _CELSIUS, "temperature_millicelsius", f"temperature {text}", missing, Decimal(1000))


def _only_one(
    values: list[Decimal],
    bounds: tuple[Decimal, Decimal],
    name: str,
    said: str,
    missing: dict[str, str],
    factor: Decimal = Decimal(1),
) -> int | None:
    """Return the only one of `values` within `bounds`, times `factor`; with none or several, say so in `missing`."""
    possible = [value for value in values if bounds[0] <= value <= bounds[1]]
    if len(possible) == 1:
        return round(possible[0] * factor)
    how = "could be meant in more than one unit" if possible else "is physically impossible in every known unit"
    missing[name] = f"{said} {how}"
    return None


def _charge(text: str | None, level_percent: float | None, missing: dict[str, str]) -> int | None:
    """Return µAh if, with the level, they make a phone's capacity; 0 means that the fuel gauge has no counter."""
    value = integer(text)
    if value is None or value == 0:
        if value == 0:
            missing["charge_counter_microamperehours"] = "charge counter 0 is what a missing counter reads"
        return None
    capacity = value * 100 / level_percent if level_percent else value
    if not _CAPACITY_MICROAMPEREHOURS[0] <= capacity <= _CAPACITY_MICROAMPEREHOURS[1]:
        missing["charge_counter_microamperehours"] = f"charge counter {text} makes no phone's capacity in µAh"
        return None
    return value


def _current(text: str | None, missing: dict[str, str]) -> int | None:
    """Return the raw number; 0 is not a measurement of no current, but of no measurement."""
    value = integer(text)
    if value == 0:
        missing["current_raw"] = "current 0 is what phones print that do not measure it now"
        return None
    return value


def _named(text: str | None, names: Mapping[int, str]) -> str | None:
    """Return the name of a code, or the word itself where a phone prints words; unknown codes stay visible."""
    code = integer(text)
    if code is None:
        return _word(text)
    return names.get(code, f"code {code}")


def _word(text: str | None) -> str | None:
    return (text or "").strip().lower() or None
