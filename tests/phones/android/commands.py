"""The phone's own programs that know its state: each takes its words and answers once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.phones.android import commands_system as system
from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_answer import Answer, complained
from tests.phones.android.commands_files import files_for_shell
from tests.phones.android.dumpsys import dumpsys
from tests.phones.model import DeviceModel

Command = Callable[[DeviceModel, Apps, Sequence[str]], Answer]

_COMMANDS: dict[str, Command] = {
    "getprop": system.getprop,
    "setprop": system.setprop,
    "dumpsys": dumpsys,
    "pidof": system.pidof,
    "ps": system.ps,
    "date": system.date,
    "uptime": system.uptime,
    "df": system.df,
}


class Commands:
    """The programs of one phone over its model and its apps."""

    names = tuple(_COMMANDS)

    def __init__(self, model: DeviceModel, apps: Apps) -> None:
        self._model = model
        self._apps = apps

    def run(self, argv: Sequence[str], stdin: bytes = b"") -> Answer:
        """Run one program; one that there is not answers like a shell, with 127."""
        command = _COMMANDS.get(argv[0])
        if command is None:
            return complained(f"/system/bin/sh: {argv[0]}: inaccessible or not found", 127)
        return command(self._model, self._apps, argv[1:])

    def files(self) -> dict[str, bytes | None]:
        """Return what /proc and /sys show the shell user now; None: permission denied."""
        return files_for_shell(self._model)
