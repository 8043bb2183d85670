"""A phone's settings, read and written by `settings`; a whole number or nothing."""

from __future__ import annotations

from collections.abc import Callable

from profiler.devices.android.numerals import integer
from profiler.errors import DeviceError

# Runs a command on the phone and returns what it printed, both streams together.
RunCommand = Callable[[str], str]


class SettingRefused(DeviceError):
    """The phone would not tell a setting, or not take it; the connection to it is good."""


class Untaken(SettingRefused):
    """The phone did not take a setting; `now` is what it is instead."""

    def __init__(self, name: str, reason: str, now: int | None) -> None:
        super().__init__(f"the phone does not let its setting {name} be changed: {reason}", hint=_DENIED_HINT)
        self.now = now


_DENIED_HINT = (
    "On Xiaomi, Redmi and Poco phones: switch on 'USB debugging (Security settings)' in the developer options"
    " and restart the phone. Elsewhere a device policy may forbid it."
)


def read_setting(run: RunCommand, namespace: str, name: str) -> int | None:
    """Return a setting, None where it was never set. Raises SettingRefused for any other answer."""
    said = run(f"settings get {namespace} {name}").strip()
    value = integer(said)
    if value is None and said != "null":
        raise SettingRefused(f"the phone does not tell its setting {name}: {_last_line(said)}")
    return value


def write_setting(run: RunCommand, namespace: str, name: str, value: int | None) -> None:
    """Write a setting, or delete it for None, and read it back. Raises Untaken where the phone did not take it."""
    command = f"settings delete {namespace} {name}" if value is None else f"settings put {namespace} {name} {value}"
    said = run(command)
    now = read_setting(run, namespace, name)
    if now != value:
        refusal = next((line.strip() for line in said.splitlines() if "ermission" in line), None)
        raise Untaken(name, refusal or f"it is {'unset' if now is None else now} instead", now)


def _last_line(text: str) -> str:
    return (text.splitlines() or ["no answer"])[-1].strip()
