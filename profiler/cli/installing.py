"""`profile install`: the runner app on a phone."""

from __future__ import annotations

import contextlib
from pathlib import Path

from profiler.cli.output import print_result
from profiler.cli.places import open_device
from profiler.clock import RealClock
from profiler.devices.android.app import Version
from profiler.devices.android.device import AndroidDevice
from profiler.errors import InputError
from profiler.report.terminal import plain


def install(apk: Path, device_name: str, serial: str | None) -> int:
    """Install an app file and say which version is there now."""
    if not apk.is_file():
        raise InputError(f"no file at {apk}", hint="The app for physical phones is not part of this version yet.")
    device = open_device(device_name, RealClock(), serial)
    with contextlib.closing(device):
        if not isinstance(device, AndroidDevice):
            raise InputError(f"{device_name} is no phone: nothing is installed there", hint="Name one: profile devices")
        device.app.install(apk)
        version = device.app.version()
    print_result(plain(f"{device.phone.serial}: the runner app is installed{_numbered(version)}"))
    return 0


def _numbered(version: Version | None) -> str:
    return f", version {version.code}" if version is not None and version.code is not None else ""
