"""Where the adb server is, and which adb to start one with."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from profiler.errors import InputError

_DEFAULT_PORT = 5037


class Address(NamedTuple):
    """Where an adb server listens."""

    host: str = "127.0.0.1"
    port: int = _DEFAULT_PORT

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def address_from(environment: Mapping[str, str]) -> Address:
    """Return the server's address as adb itself takes it from the environment. Raises InputError."""
    name = "ADB_SERVER_SOCKET"
    value = environment.get(name)
    if value:
        match = re.fullmatch(r"tcp:(?:(?P<host>.+):)?(?P<port>\d+)", value)
        host, port = (match["host"] or Address().host, match["port"]) if match else ("", "")
    else:
        name = "ANDROID_ADB_SERVER_PORT"
        host = environment.get("ANDROID_ADB_SERVER_ADDRESS") or Address().host
        value = port = environment.get(name) or str(_DEFAULT_PORT)
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(
            f"{name}={value} names no adb server",
            hint="Give a port from 1 to 65535, as in ANDROID_ADB_SERVER_PORT=5037, or unset it.",
        )
    return Address(host, int(port))


def find_adb(environment: Mapping[str, str]) -> str | None:
    """Return the adb to start a server with: the user's choice, the one that adbutils brings, or one on the path."""
    if chosen := environment.get("ADBUTILS_ADB_PATH"):
        return chosen
    package = importlib.util.find_spec("adbutils")  # finds it without importing it, which takes 0.16 s
    for folder in (package.submodule_search_locations if package else None) or ():
        brought = Path(folder) / "binaries" / ("adb.exe" if os.name == "nt" else "adb")
        if brought.is_file():
            return str(brought)
    return shutil.which("adb", path=environment.get("PATH"))
