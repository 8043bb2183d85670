"""`dumpsys`: which service prints what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.android.dumpsys_activity import activity
from tests.phones.android.dumpsys_battery import battery_service
from tests.phones.android.dumpsys_energy import METER, batterystats, cpuinfo, power_stats
from tests.phones.android.dumpsys_memory import meminfo
from tests.phones.android.dumpsys_screen import device_idle, power, trust, window
from tests.phones.android.dumpsys_thermal import thermal_service
from tests.phones.model import DeviceModel

Service = Callable[[DeviceModel, Sequence[str]], Answer]

_SERVICES: dict[str, Service] = {
    "battery": battery_service,
    "thermalservice": thermal_service,
    "meminfo": meminfo,
    "activity": activity,
    "power": power,
    "window": window,
    "trust": trust,
    "deviceidle": device_idle,
    "batterystats": batterystats,
    "cpuinfo": cpuinfo,
    METER: power_stats,
}


def dumpsys(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print a service's state; a service that the phone does not have is an error on stderr with exit code 0."""
    words = list(words)
    if words[:1] == ["-t"]:
        del words[:2]
    present = {name for name in _SERVICES if name != METER or model.persona.dialect.energy_meter}
    if words == ["-l"]:
        return said("Currently running services:\n" + "\n".join(f"  {name}" for name in sorted(present)))
    if not words:
        return complained("dumpsys: name a service", 1)
    if words[0] not in present:
        return complained(f"Can't find service: {words[0]}", 0)
    return _SERVICES[words[0]](model, words[1:])
