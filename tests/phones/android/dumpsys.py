"""`dumpsys`: which service prints what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.android.dumpsys_battery import battery_service
from tests.phones.android.dumpsys_thermal import thermal_service
from tests.phones.model import DeviceModel

Service = Callable[[DeviceModel, Sequence[str]], Answer]

_SERVICES: dict[str, Service] = {
    "battery": battery_service,
    "thermalservice": thermal_service,
}


def dumpsys(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print a service's state; a service that the phone does not have is an error on stderr with exit code 0."""
    words = list(words)
    if words[:1] == ["-t"]:
        del words[:2]
    if words == ["-l"]:
        return said("Currently running services:\n" + "\n".join(f"  {name}" for name in sorted(_SERVICES)))
    if not words:
        return complained("dumpsys: name a service", 1)
    service = _SERVICES.get(words[0])
    if service is None:
        return complained(f"Can't find service: {words[0]}", 0)
    return service(model, words[1:])
