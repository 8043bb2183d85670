"""A switch for the USB power of a phone: a command of the user's, as for a hub whose ports can be switched."""

from __future__ import annotations

import shlex
import subprocess

from profiler.errors import DeviceError, InputError

_TIMEOUT_S = 30.0


class PowerSwitch:
    """Runs a command with `off` or `on` after it, as `uhubctl -l 1-1 -p 2 -a`. Raises InputError for an empty one."""

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise InputError(f"--usb-power {command!r} is no command: {error}") from error
        if not self._words:
            raise InputError("--usb-power names no command", hint="For example: --usb-power 'uhubctl -l 1-1 -p 2 -a'")
        self.is_off = False

    def off(self) -> None:
        """Take the phone's power away. Raises DeviceError."""
        self._run("off")
        self.is_off = True

    def on(self) -> None:
        """Give it back, where it was taken. Raises DeviceError."""
        if self.is_off:
            self._run("on")
            self.is_off = False

    def _run(self, state: str) -> None:
        words = [*self._words, state]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DeviceError(f"cannot switch USB power {state}: {shlex.join(words)}: {error}") from error
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise DeviceError(
                f"cannot switch USB power {state}: {shlex.join(words)} ended with {done.returncode}",
                hint=said[-1] if said else None,
            )
