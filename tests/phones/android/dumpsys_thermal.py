"""`dumpsys thermalservice` and `cmd thermalservice`: status, cached and current temperatures, and a faked status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.model import DeviceModel
from tests.phones.model_reported import HalTemperature

_SKIN = 3
_USAGE = """Thermal service (thermalservice) commands:
  help
    Print this help text.

  override-status STATUS
    sets and locks the thermal status of the device to STATUS.
    status code is defined in android.os.Temperature.

  reset
    unlocks the thermal status of the device."""


def thermal_service(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print what `dumpsys thermalservice` prints."""
    with model.present():
        return said("\n".join(_dump(model)))


def command_thermal_service(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Lock the reported status, or unlock it; nothing gets cooler or hotter."""
    with model.present():
        match words:
            case ["override-status", status] if status.isdigit() and int(status) <= 6:
                model.reported.status_faked = int(status)
            case ["override-status", status]:
                return complained(f"Invalid thermal status: {status}", 255)
            case ["reset"]:
                model.reported.status_faked = None
            case _:
                return complained(_USAGE, 255)
    return said("")


def _dump(model: DeviceModel) -> list[str]:
    facts, reported = model.persona.thermal_service, model.reported
    lines = [f"IsStatusOverride: {'false' if reported.status_faked is None else 'true'}"]
    lines += ["ThermalEventListeners:", "\tcallbacks: 4", "\tkilled: false", "\tbroadcasts count: -1"]
    lines += ["ThermalStatusListeners:", "\tcallbacks: 7", "\tkilled: false", "\tbroadcasts count: -1"]
    lines += [f"Thermal Status: {reported.thermal_status()}", "Cached temperatures:"]
    lines += _temperatures(reported.cached if facts.ready else ())
    lines.append(f"HAL Ready: {'true' if facts.ready else 'false'}")
    if facts.ready:
        lines += ["HAL connection:", f"\t{facts.connection}", "Current temperatures from HAL:"]
        lines += _temperatures(reported.hal_temperatures())
        lines.append("Current cooling devices from HAL:")
        lines += [f"\tCoolingDevice{{mValue=0, mType=2, mName={name}}}" for name in facts.cooling_devices]
        lines.append("Temperature static thresholds from HAL:")
        lines += _thresholds(model)
    return lines


def _temperatures(found: Iterable[HalTemperature]) -> list[str]:
    """List temperatures as Java prints a float: always a decimal, never a trailing zero more."""
    return [
        f"\tTemperature{{mValue={round(one.value_c, 3)}, mType={one.sensor.type}, "
        f"mName={one.sensor.name}, mStatus={one.status}}}"
        for one in found
    ]


def _thresholds(model: DeviceModel) -> list[str]:
    facts = model.persona.thermal_service
    hot = f"[NaN, {', '.join(str(value) for value in facts.thresholds_c)}]"
    cold = f"[{', '.join(['NaN'] * 7)}]"
    skins = [sensor.name for sensor in facts.sensors if sensor.type == _SKIN]
    if "2.0" in facts.connection:
        return [
            f"\t{{.type = SKIN, .name = {name}, .hotThrottlingThresholds = {hot}, "
            f".coldThrottlingThresholds = {cold}, .vrThrottlingThreshold = NaN}}"
            for name in skins
        ]
    return [
        f"\tTemperatureThreshold{{mType={_SKIN}, mName={name}, mHotThrottlingThresholds={hot}, "
        f"mColdThrottlingThresholds={cold}}}"
        for name in skins
    ]
