"""The gate before a measurement: a battery in its band, and a phone that has cooled down.

Temperatures decide, not the status enum, which says "none" for an hour while phones slow down (elizaOS/eliza#11734).
The battery band is our choice: full ones are heated by their charger, and some phones cap clocks at low ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from profiler.clock import Clock, Deadline
from profiler.devices.android import battery, thermal
from profiler.devices.android.battery import Battery
from profiler.devices.android.settings import RunCommand
from profiler.devices.android.thermal import Thermal
from profiler.devices.android.unavailable import Faked, Unavailable, refusal_of
from profiler.errors import DeviceError

LEAST_PERCENT, MOST_PERCENT = 30, 80
COOL_WITHIN_S = 600.0
LOOK_EVERY_S = 5.0


class Bars(NamedTuple):
    """Temperatures below which a measurement may begin, in milli-°C; ours unless a device profile knows better."""

    battery_millicelsius: int = 35_000
    skin_millicelsius: int = 36_000
    processor_millicelsius: int = 50_000


class Temperatures(NamedTuple):
    """The hottest of each kind; None where the phone has no reading of it."""

    battery_millicelsius: int | None
    skin_millicelsius: int | None
    processor_millicelsius: int | None


class Cool(NamedTuple):
    """A phone that may be measured, after how long, and what is to be said of it."""

    temperatures: Temperatures
    waited_s: float
    notes: tuple[str, ...]


def check_charge(reading: Battery | Unavailable, who: str, *, least_percent: int = LEAST_PERCENT) -> tuple[str, ...]:
    """Return notes on the battery's charge. Raises DeviceError below `least_percent`."""
    level = None if isinstance(reading, Unavailable) else reading.level_percent
    if level is None:
        return (f"the battery level of {who} cannot be read",)
    if level < least_percent:
        raise DeviceError(
            f"the battery of {who} is at {level:.0f} %, below {least_percent} %, where phones slow down",
            hint="Charge it to between 30 and 80 %, or allow less for this run: --least-battery PERCENT",
        )
    if level < LEAST_PERCENT:
        return (f"the battery is at {level:.0f} %, below {LEAST_PERCENT} %: the phone may slow down",)
    if level > MOST_PERCENT:
        return (f"the battery is at {level:.0f} %, above {MOST_PERCENT} %: charging it further heats the phone",)
    return ()


def read_charge(run: RunCommand, who: str) -> Battery | Unavailable:
    """Read the battery. Raises DeviceError where its state is faked."""
    reading = battery.read_battery(run(battery.COMMAND))
    if isinstance(reading, Faked):
        raise refusal_of(reading, who)
    return reading


def read_heat(run: RunCommand, who: str) -> Thermal | Unavailable:
    """Read the thermal service. Raises DeviceError where its status is faked."""
    reading = thermal.read_thermal_service(run(thermal.COMMAND))
    if isinstance(reading, Faked):
        raise refusal_of(reading, who)
    return reading


def read_temperatures(run: RunCommand, who: str) -> Temperatures:
    """Read what decides; kernel zones stand in for a thermal service without readings. Raises DeviceError if faked."""
    charge = read_charge(run, who)
    heat = read_heat(run, who)
    sensors = heat if isinstance(heat, Thermal) else None
    processor = sensors.hottest_millicelsius("cpu", "gpu", "npu", "soc") if sensors else None
    skin = sensors.hottest_millicelsius("skin") if sensors else None
    own = None if isinstance(charge, Unavailable) else charge.temperature_millicelsius
    return Temperatures(
        battery_millicelsius=own if own is not None or sensors is None else sensors.hottest_millicelsius("battery"),
        skin_millicelsius=skin,
        processor_millicelsius=_hottest_zone(run) if processor is None and skin is None else processor,
    )


def wait_until_cool(
    run: RunCommand,
    who: str,
    clock: Clock,
    tell: Callable[[str], None],
    *,
    bars: Bars | None = None,
    deadline: Deadline | None = None,
) -> Cool:
    """Wait until every temperature is below its bar, telling what is waited for.

    Without `deadline`, ten minutes. Raises DeviceError when it has passed: the repetition fails. A phone that shows no
    temperature at all is not waited for, and a note says so.
    """
    until = deadline or Deadline(COOL_WITHIN_S, clock)
    start_ns = clock.boot_ns()
    while True:
        now = read_temperatures(run, who)
        hot = _too_hot(now, bars or Bars())
        if not hot:
            return Cool(now, (clock.boot_ns() - start_ns) / 1e9, _notes(now))
        if until.passed():
            raise DeviceError(
                f"{who} did not cool down in time: {hot}",
                hint="Take it out of its case, off its charger or out of the sun; or give it more time.",
            )
        tell(f"waiting for {who} to cool down, {until.left_s() / 60:.0f} min at most: {hot}")
        clock.sleep(min(LOOK_EVERY_S, until.left_s()))


def _too_hot(now: Temperatures, bars: Bars) -> str:
    kinds = (
        ("battery", now.battery_millicelsius, bars.battery_millicelsius),
        ("skin", now.skin_millicelsius, bars.skin_millicelsius),
        ("processor", now.processor_millicelsius, bars.processor_millicelsius),
    )
    return ", ".join(
        f"{kind} {value / 1000:.1f} °C (bar {bar / 1000:.1f} °C)"
        for kind, value, bar in kinds
        if value is not None and value >= bar
    )


def _notes(now: Temperatures) -> tuple[str, ...]:
    if all(value is None for value in now):
        return ("no temperature of the phone can be read: whether it had cooled down is not known",)
    return ()


def _hottest_zone(run: RunCommand) -> int | None:
    zones = thermal.read_thermal_zones(run(thermal.ZONES_COMMAND))
    if isinstance(zones, Unavailable):
        return None
    return thermal.hottest_zone_millicelsius(zones)
