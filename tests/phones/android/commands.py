"""The phone's own programs that know its state: each takes its words and answers once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.phones.android import commands_settings as settings
from tests.phones.android import commands_system as system
from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_am import am
from tests.phones.android.commands_answer import Answer, complained
from tests.phones.android.commands_files import files_for_shell
from tests.phones.android.commands_logcat import logcat
from tests.phones.android.commands_pm import pm
from tests.phones.android.dumpsys import dumpsys
from tests.phones.android.dumpsys_battery import battery_service
from tests.phones.android.dumpsys_energy import lshal
from tests.phones.android.dumpsys_thermal import command_thermal_service
from tests.phones.model import DeviceModel

Command = Callable[[DeviceModel, Apps, Sequence[str]], Answer]

_COMMANDS: dict[str, Command] = {
    "getprop": system.getprop,
    "setprop": system.setprop,
    "dumpsys": dumpsys,
    "lshal": lshal,
    "am": am,
    "svc": settings.svc,
    "settings": settings.settings,
    "input": settings.input_,
    "wm": settings.wm,
    "locksettings": settings.locksettings,
    "logcat": logcat,
    "pidof": system.pidof,
    "ps": system.ps,
    "date": system.date,
    "uptime": system.uptime,
    "df": system.df,
}

# On a phone most of the programs above only call `cmd SERVICE …`; these have no program of their own.
_SERVICES: dict[str, Callable[[DeviceModel, Sequence[str]], Answer]] = {
    "thermalservice": command_thermal_service,
    "power": settings.cmd_power,
    "battery": battery_service,
}
_SAME_AS = {"activity": "am", "package": "pm", "settings": "settings", "lock_settings": "locksettings", "window": "wm"}


class Commands:
    """The programs of one phone over its model and its apps."""

    names = (*_COMMANDS, "pm", "cmd")

    def __init__(self, model: DeviceModel, apps: Apps) -> None:
        self._model = model
        self._apps = apps

    def run(self, argv: Sequence[str], stdin: bytes = b"") -> Answer:
        """Run one program; one that there is not answers like a shell, with 127."""
        name, *words = argv
        if name == "cmd":
            return self._cmd(words, stdin)
        if name == "pm":
            return pm(self._model, self._apps, words, stdin)
        command = _COMMANDS.get(name)
        if command is None:
            return complained(f"/system/bin/sh: {name}: inaccessible or not found", 127)
        return command(self._model, self._apps, words)

    def _cmd(self, words: Sequence[str], stdin: bytes) -> Answer:
        if not words:
            return complained("cmd: No service specified; use -l to list all services", 20)
        service, *rest = words
        if service in _SERVICES:
            return _SERVICES[service](self._model, rest)
        if service in _SAME_AS:
            return self.run([_SAME_AS[service], *rest], stdin)
        return complained(f"cmd: Can't find service: {service}", 20)

    def files(self) -> dict[str, bytes | None]:
        """Return what /proc and /sys show the shell user now; None: permission denied."""
        return files_for_shell(self._model)
