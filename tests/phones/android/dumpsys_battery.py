"""`dumpsys battery` in the shapes of Android 10, 13, 14 and later, One UI and HyperOS; and what it can fake."""

from __future__ import annotations

from collections.abc import Sequence

from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.battery import PLUGGED_NUMBER
from tests.phones.gauges import BatteryReading
from tests.phones.model import DeviceModel

_STOPPED = "  (UPDATES STOPPED -- use 'reset' to restart)"
_GOOD = 2
_SETTABLE = {"level": "level", "status": "status", "temp": "temperature", "counter": "charge_counter"}
_PLUGS = {"ac": PLUGGED_NUMBER["ac"], "usb": PLUGGED_NUMBER["usb"], "wireless": PLUGGED_NUMBER["wireless"]}
_USAGE = """Battery service (battery) commands:
  help
    Print this help text.
  get [-f] [ac|usb|wireless|dock|status|level|temp|present|counter|invalid]
  set [-f] [ac|usb|wireless|dock|status|level|temp|present|counter|invalid] <value>
    Force a battery property value, freezing battery state.
  unplug [-f]
    Force battery unplugged, freezing battery state.
  reset [-f]
    Unfreeze battery state, returning to current hardware values."""


def battery_service(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print the state, or fake it: what is reported, never what the hardware does."""
    words = [word for word in words if word not in ("-f", "-a")]
    with model.present():
        match words:
            case []:
                return said(_dump(model))
            case ["unplug"]:
                model.reported.fake_battery(plugged=0)
            case ["reset"]:
                model.reported.reset_battery()
            case ["set", name, value] if value.lstrip("-").isdigit():
                return _set(model, name, int(value))
            case _:
                return complained(_USAGE, 255)
    return said("")


def _set(model: DeviceModel, name: str, value: int) -> Answer:
    if name in _PLUGS:
        model.reported.fake_battery(plugged=_PLUGS[name] if value else 0)
    elif name in _SETTABLE:
        model.reported.fake_battery(**{_SETTABLE[name]: value})
    elif name != "present":
        return complained(f"Unknown set option: {name}", 255)
    return said("")


def _dump(model: DeviceModel) -> str:
    reading, dialect = model.reported.dumped_battery(), model.persona.dialect.battery
    lines = ["Current Battery Service state:"]
    if model.reported.battery_faked is not None:
        lines.append(_STOPPED)
    lines += _plugs(model, reading)
    lines += _limits(model, reading)
    lines += _state(model, reading)
    if dialect in ("android14", "xiaomi"):
        lines += ["  Charging state: 0", "  Charging policy: 0", "  Capacity level: 3"]
    if dialect == "samsung":
        lines += _samsung(model, reading)
    if dialect == "xiaomi":
        lines += ["MiuiBatteryService first usage time:", "  mSetBatteryUsageTimeCount=0", "  mNtpTime=-1"]
    return "\n".join(lines)


def _plugs(model: DeviceModel, reading: BatteryReading) -> list[str]:
    titles = {"AC": "ac", "USB": "usb", "Wireless": "wireless"}
    lines = [f"  {title} powered: {_truth(reading.plugged == _PLUGS[name])}" for title, name in titles.items()]
    lines += ["  Dock powered: false"] if model.persona.system.api >= 33 else []
    return [line.lower() for line in lines] if model.persona.dialect.battery == "xiaomi" else lines


def _limits(model: DeviceModel, reading: BatteryReading) -> list[str]:
    """List what a charger may give; 500 mA and 5 V from a USB port."""
    limit = 0 if not reading.plugged or reading.level >= 100 else 500_000 if reading.plugged == 2 else 3_000_000
    lines = [f"  Max charging current: {limit}", f"  Max charging voltage: {5_000_000 if limit else 0}"]
    if model.persona.dialect.battery == "xiaomi":
        lines.insert(1, _sent("Max charging current"))
        return [
            *lines,
            f"  charge counter: {reading.charge_counter or 0}",
            f"  current now: {reading.current_now or 0}",
        ]
    return [*lines, f"  Charge counter: {reading.charge_counter or 0}"]


def _state(model: DeviceModel, reading: BatteryReading) -> list[str]:
    return [
        f"  status: {reading.status}",
        f"  health: {_GOOD}",
        "  present: true",
        f"  level: {reading.level}",
        "  scale: 100",
        f"  voltage: {reading.voltage}",
        *([_sent("voltage")] if model.persona.dialect.battery == "xiaomi" else []),
        f"  temperature: {reading.temperature}",
        f"  technology: {model.persona.battery.technology}",
    ]


def _sent(name: str) -> str:
    """Return a line that Android 15 and later print between the keys."""
    return f" Time when the latest updated value of the {name} was sent via battery changed broadcast: +16s303ms"


def _samsung(model: DeviceModel, reading: BatteryReading) -> list[str]:
    """List One UI's additions: a second, lower-case charge counter, a current in mA, and its event log."""
    stamp = model.boot_ns() // 1_000_000
    return [
        "  batterySWSelfDischarging: false",
        "  batteryMiscEvent: 0",
        "  mBootCompleted: true",
        f"  mSecPlugTypeSummary: {reading.plugged}",
        f"  LED Charging: {_truth(reading.plugged != 0)}",
        f"  current now: {reading.current_now or 0}",
        f"  charge counter: {reading.charge_counter or 0}",
        "  mSavedBatteryAsoc: 96",
        "  mSavedBatteryMaxTemp: 534",
        "  mSavedBatteryUsage: 132",
        "",
        "[EventLogBuffer]",
        f"  [{stamp}] level:72, status:3, health:2, plugged:0, voltage:3987, temperature:345, current avg:-412",
    ]


def _truth(value: bool) -> str:
    return "true" if value else "false"
