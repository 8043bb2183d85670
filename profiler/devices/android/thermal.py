"""What a phone says about heat: `dumpsys thermalservice` and the kernel's thermal zones.

Cached temperatures are whatever was last announced and may be an hour old: only the section read from the HAL counts.
Its types are kept by number and by name, since one vendor's old numbers are shifted by one (Samsung `Sdhms`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Literal, NamedTuple

from profiler.devices.android.numerals import decimal, integer, number
from profiler.devices.android.unavailable import Faked, Unavailable, refused

COMMAND = "dumpsys thermalservice"
ZONES_COMMAND = 'for z in /sys/class/thermal/thermal_zone*; do echo "$(cat $z/type):$(cat $z/temp)"; done'
RESET_COMMAND = "adb shell cmd thermalservice reset"

Part = Literal["cpu", "gpu", "npu", "soc", "battery", "skin", "other"]
# android.os.Temperature; 6 to 8 are voltages, currents and percentages of the current limiter, not temperatures.
_PARTS: dict[int, Part] = {0: "cpu", 1: "gpu", 2: "battery", 3: "skin", 9: "npu", 10: "npu", 13: "soc"}
_NOT_TEMPERATURES = (6, 7, 8)
_NAMED_PARTS: dict[str, Part] = {
    "TYPE_CPU": "cpu",
    "TYPE_GPU": "gpu",
    "TYPE_NPU": "npu",
    "TYPE_TPU": "npu",
    "TYPE_SOC": "soc",
    "TYPE_BATTERY": "battery",
    "TYPE_SKIN": "skin",
}
_CELSIUS = (Decimal(-40), Decimal(150))
_SECTIONS = {
    "Cached temperatures": "cached",
    "Current temperatures from HAL": "hal",
    "Current cooling devices from HAL": "cooling",
    "Temperature static thresholds from HAL": "thresholds",
    "Temperature headroom thresholds": "headroom",
    "HAL connection": "connection",
}
# Names that vendors give to zones; whole words of few letters, so that a "charger" holds no "ap".
_NEAR_PROCESSOR = re.compile(r"cpu|gpu|npu|tpu|soc|skin|tsens|^(?:big|mid|little|g3d|ap)(?:\b|_)", re.IGNORECASE)
_ENTRY = re.compile(r"(Temperature|CoolingDevice)\s*\{(.*)\}")
_THRESHOLD_NAME = re.compile(r"(?:mName|\.name)\s*=\s*([^,}\]]+)")
_HOT = re.compile(r"[hH]otThrottlingThresholds\s*=\s*\[([^\]]*)\]")


class Sensor(NamedTuple):
    """One temperature; `type_code` is the phone's own number, `part` what it is about."""

    name: str
    part: Part
    type_code: int | None
    temperature_millicelsius: int
    status: int | None


class CoolingDevice(NamedTuple):
    """How far a throttle is pulled: 0 is not at all, its top is the device's own."""

    name: str
    type_code: int | None
    value: int


class Thresholds(NamedTuple):
    """The temperature at which each status 0–6 begins for a sensor; None where the phone says NaN."""

    name: str
    hot_millicelsius: tuple[int | None, ...]


class Thermal(NamedTuple):
    """One reading. `sensors` come from the HAL only; empty ones have a reason in `no_sensors`.

    `status` (0–6) is a hint: 0 is not evidence of coolness. `hal_ready` False: nothing below was read from hardware.
    """

    status: int | None
    hal_ready: bool | None
    hal_connection: str | None
    sensors: tuple[Sensor, ...]
    no_sensors: str | None
    cached_sensors: tuple[Sensor, ...]
    cooling_devices: tuple[CoolingDevice, ...]
    thresholds: tuple[Thresholds, ...]
    headroom_thresholds: tuple[float | None, ...]

    def hottest_millicelsius(self, *parts: Part) -> int | None:
        """Return the highest temperature among `parts`; None where none of them is read."""
        return max((s.temperature_millicelsius for s in self.sensors if s.part in parts), default=None)


class Zone(NamedTuple):
    """One kernel thermal zone, or why it reads nothing."""

    name: str
    temperature_millicelsius: int | None
    reason: str | None


def read_thermal_service(text: str) -> Thermal | Faked | Unavailable:
    """Read what `dumpsys thermalservice` printed (Android 10 and later); an overridden status is `Faked`."""
    lines = [line.strip() for line in text.splitlines()]
    if _after(lines, "IsStatusOverride") == "true":
        return Faked("the thermal status", RESET_COMMAND, text)
    status, ready = integer(_after(lines, "Thermal Status")), _after(lines, "HAL Ready")
    sections = _sections(lines)
    if status is None and ready is None and "hal" not in sections:
        return Unavailable(refused(text) or "no thermal state in what dumpsys thermalservice printed", text)
    sensors = tuple(_sensors(sections.get("hal", ())))
    hal_ready = None if ready is None else ready == "true"
    return Thermal(
        status=status,
        hal_ready=hal_ready,
        hal_connection=" ".join(next(iter(sections.get("connection", ())), "").split()) or None,
        sensors=sensors,
        no_sensors=None if sensors else _why_empty(hal_ready, sections),
        cached_sensors=tuple(_sensors(sections.get("cached", ()))),
        cooling_devices=tuple(_cooling_devices(sections.get("cooling", ()))),
        thresholds=tuple(_thresholds(sections.get("thresholds", ()))),
        headroom_thresholds=_headroom(sections.get("headroom", ())),
    )


def read_thermal_zones(text: str) -> tuple[Zone, ...] | Unavailable:
    """Read `type:temp` lines, as printed by a loop over /sys/class/thermal/thermal_zone*/."""
    zones = tuple(zone for line in text.splitlines() if (zone := _zone(line)) is not None)
    if all(zone.temperature_millicelsius is None for zone in zones):
        reasons = sorted({zone.reason for zone in zones if zone.reason})
        return Unavailable(refused(text) or "; ".join(reasons) or "no thermal zones", text)
    return zones


def hottest_zone_millicelsius(zones: Iterable[Zone]) -> int | None:
    """Return the hottest of the zones near the processor or the skin; chargers, modems and the battery are others."""
    readings = (zone.temperature_millicelsius for zone in zones if _NEAR_PROCESSOR.search(zone.name))
    return max((value for value in readings if value is not None), default=None)


def _after(lines: Iterable[str], name: str) -> str | None:
    """Return what follows `name:` at the start of a line."""
    return next((line[len(name) + 1 :].strip().lower() for line in lines if line.startswith(f"{name}:")), None)


def _sections(lines: Iterable[str]) -> dict[str, list[str]]:
    """Return the lines below each known heading; any other heading ends a section."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in lines:
        heading = _SECTIONS.get(line.partition(":")[0])
        if heading is not None:
            current = found.setdefault(heading, [])
            line = line.partition(":")[2].strip()
        elif _ends_section(line):
            current = []
        if line:
            current.append(line)
    return found


def _ends_section(line: str) -> bool:
    return line.endswith(":") or line.startswith(("HAL Ready:", "Thermal Status:", "IsStatusOverride:"))


def _why_empty(hal_ready: bool | None, sections: dict[str, list[str]]) -> str:
    if hal_ready is False:
        return "the phone's thermal HAL is not ready, so nothing was read from hardware"
    if not sections.get("hal"):
        return "the phone's thermal HAL lists no temperatures"
    return "none of the temperatures that the phone's thermal HAL lists is a reading"


def _sensors(lines: Iterable[str]) -> Iterator[Sensor]:
    for fields in _entries(lines, "Temperature"):
        sensor = _sensor(fields)
        if sensor is not None:
            yield sensor


def _sensor(fields: dict[str, str]) -> Sensor | None:
    """Return a sensor unless its value is a placeholder: at most -40 °C, exactly 0, or no temperature at all."""
    value, code, name = decimal(fields.get("mValue")), integer(fields.get("mType")), fields.get("mName", "")
    if value is None or value == 0 or not _CELSIUS[0] < value < _CELSIUS[1]:
        return None
    if code in _NOT_TEMPERATURES and not name.startswith("TYPE_"):
        return None
    part = _NAMED_PARTS.get(name) or ("other" if name.startswith("TYPE_") else _part(code))
    return Sensor(name, part, code, round(value * 1000), integer(fields.get("mStatus")))


def _part(code: int | None) -> Part:
    return "other" if code is None else _PARTS.get(code, "other")


def _cooling_devices(lines: Iterable[str]) -> Iterator[CoolingDevice]:
    for fields in _entries(lines, "CoolingDevice"):
        value = integer(fields.get("mValue"))
        if value is not None:
            yield CoolingDevice(fields.get("mName", ""), integer(fields.get("mType")), value)


def _entries(lines: Iterable[str], kind: str) -> Iterator[dict[str, str]]:
    """Yield the fields of `Kind{a=1, b=2}` lines, in whatever order they stand."""
    for line in lines:
        match = _ENTRY.search(line)
        if match and match[1] == kind:
            pairs = (pair.partition("=") for pair in re.split(r",\s+(?=m[A-Z]\w*=)", match[2]))
            yield {name.strip(): value.strip() for name, _, value in pairs}


def _thresholds(lines: Iterable[str]) -> Iterator[Thresholds]:
    for line in lines:
        name, hot = _THRESHOLD_NAME.search(line), _HOT.search(line)
        if name and hot:
            yield Thresholds(name[1].strip(), tuple(_millicelsius(text) for text in hot[1].split(", ")))


def _millicelsius(text: str) -> int | None:
    value = decimal(text)
    return None if value is None else round(value * 1000)


def _headroom(lines: Iterable[str]) -> tuple[float | None, ...]:
    """Read `[NaN, 0.83, …]`, one a status 0–6, on the heading's line or the next."""
    match = re.search(r"\[([^\]]*)\]", " ".join(lines))
    return () if match is None else tuple(number(text) for text in match[1].split(", "))


def _zone(line: str) -> Zone | None:
    name, found, said = line.strip().rpartition(":")
    if not found or not name:
        return None
    if refused(line):
        return Zone(name.rpartition(":")[2].strip(), None, said.strip())
    return Zone(name.strip(), *_zone_temperature(said.strip()))


def _zone_temperature(said: str) -> tuple[int | None, str | None]:
    """Return milli-°C, or None and why.

    The kernel's unit is milli-°C; old kernels print °C or tenths. What may be meant in two units is no reading.
    Nor is 0 or less: that is what absent sensors read.
    """
    value = integer(said)
    if value is None:
        return None, f"reads {said!r}" if said else "reads nothing"
    if value <= 0:
        return None, f"reads {value}, as an absent sensor does"
    possible = [
        value * unit for unit in (1, 100, 1000) if _ZONE_MILLICELSIUS[0] <= value * unit <= _ZONE_MILLICELSIUS[1]
    ]
    if len(possible) == 1:
        return possible[0], None
    return None, f"reads {value}, " + ("which may be meant in two units" if possible else "which is no temperature")


# A phone that is measured stands in a room: colder and hotter are other units.
_ZONE_MILLICELSIUS = (5_000, 150_000)
