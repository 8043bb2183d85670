"""The runner app on a phone: installed, started, stopped, and why its process ended."""

from __future__ import annotations

import re
import select
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from profiler.clock import Clock, Deadline
from profiler.devices.android.adb import Transport
from profiler.devices.android.exits import KillReason, kill_reason, read_exit_info
from profiler.devices.android.kill_lines import read_kill_lines
from profiler.devices.android.launching import Launch, Refusal, read_install, read_launch
from profiler.devices.android.shell import Shell, quoted
from profiler.devices.android.unavailable import Unavailable
from profiler.errors import DeviceError, InputError, MissingSource

PACKAGE = "org.ondeviceprofiler.runner"
ACTIVITY = ".RunnerActivity"
_INSTALL_S = 180.0
_START_S = 60.0
_READ_BYTES = 1 << 20
_LOOK_S = 0.1
# The app file is at fault, not the phone.
_FILE_CODES = ("INSTALL_PARSE_FAILED", "INSTALL_FAILED_INVALID_APK", "INSTALL_FAILED_TEST_ONLY")
_VERSION = re.compile(r"^package:(?P<package>\S+)(?: versionCode:(?P<code>\d+))?\s*$", re.MULTILINE)
_LOG_TAGS = "am_kill am_proc_died am_crash am_anr lowmemorykiller lmkd Zygote libc DEBUG"
_LOG = f"logcat -d -b main,system,events,crash -v threadtime -t 4000 -s {_LOG_TAGS}"


class Version(NamedTuple):
    """An installed version; the code is None on phones that do not tell."""

    code: int | None


class Started(NamedTuple):
    """A fresh process of the app."""

    pid: int | None
    launch: Launch


class App:
    """One app on one phone."""

    def __init__(
        self, transport: Transport, shell: Shell, clock: Clock, *, package: str = PACKAGE, activity: str = ACTIVITY
    ) -> None:
        self._transport = transport
        self._shell = shell
        self._clock = clock
        self._package = package
        self._component = f"{package}/{activity}"

    def version(self) -> Version | None:
        """Return the installed version, or None where it is not installed. Raises DeviceError."""
        said = self._shell.check(f"pm list packages --show-versioncode {self._package}")
        for found in _VERSION.finditer(said):
            if found["package"] == self._package:
                return Version(int(found["code"]) if found["code"] else None)
        return None

    def install(self, apk: Path, deadline_s: float = _INSTALL_S) -> None:
        """Install the app over the one that is there, which keeps its data.

        Raises MissingSource or InputError where the file is no good, DeviceError where the phone refuses.
        """
        if not apk.is_file():
            raise MissingSource(f"there is no app {apk} to install")
        said = self._stream(apk, Deadline(deadline_s, self._clock), deadline_s)
        found = read_install(said, self._package)
        if isinstance(found, Unavailable):
            raise self._failed(f"cannot install {apk.name}: {_last_line(said)}", "Try again; see the phone's screen.")
        if isinstance(found, Refusal):
            text = f"cannot install {apk.name}: {found.code}" + (f" ({found.detail})" if found.detail else "")
            if found.code.startswith(_FILE_CODES):
                raise InputError(text, hint=found.what_to_do)
            raise self._failed(text, found.what_to_do)

    def start(self, extras: Mapping[str, str], deadline_s: float = _START_S) -> Started:
        """Start a fresh process of the app, ending one that runs. Raises DeviceError with the phone's reason."""
        words = [word for name, value in extras.items() for word in ("--es", name, value)]
        command = f"am start -W -S -n {quoted(self._component, *words)}"
        output = self._shell.run(command, deadline_s)
        said = f"{output.text}\n{output.stderr.decode('utf-8', 'replace')}"
        launch = read_launch(said)
        if isinstance(launch, Refusal):
            raise self._failed(f"the app {self._package} did not start: {launch.code}", launch.what_to_do)
        if isinstance(launch, Unavailable):
            raise self._failed(f"the app {self._package} did not start: {output.complaint}", "See the phone's screen.")
        pids = self.pids()
        return Started(pids[-1] if pids else None, launch)

    def stop(self) -> None:
        """End all processes of the app. Raises DeviceError."""
        self._shell.check(f"am force-stop {self._package}")

    def pids(self) -> tuple[int, ...]:
        """Return the processes of the app, none where it does not run. Raises DeviceError."""
        output = self._shell.run(f"pidof {self._package} {self._package}:runner")
        return tuple(int(word) for word in output.text.split() if word.isdigit())

    def alive(self, pid: int) -> bool:
        """Tell whether a process is there and still the app's: numbers are used again. Raises DeviceError."""
        return pid in self.pids()

    def why_ended(self, pid: int, *, reports_low_memory: bool | None = None, wait_s: float = 2.0) -> KillReason | None:
        """Return why a process of the app ended, or None where nothing on the phone tells.

        The system writes it down a moment after the end, for which it is waited. `reports_low_memory` is the phone's
        property `persist.sys.lmk.reportkills`. Raises DeviceError.
        """
        deadline = Deadline(wait_s, self._clock)
        while True:
            reason = self._evidence(pid, reports_low_memory)
            if reason is not None or deadline.passed():
                return reason
            self._clock.sleep(_LOOK_S)

    def _evidence(self, pid: int, reports_low_memory: bool | None) -> KillReason | None:
        told, logged = self._shell.batch([f"dumpsys activity exit-info {self._package}", _LOG])
        exits = read_exit_info(told.text)
        kills = [kill for kill in read_kill_lines(logged.text) if self._may_be_ours(kill.process)]
        return kill_reason(
            pid, () if isinstance(exits, Unavailable) else exits, kills, reports_low_memory=reports_low_memory
        )

    def _may_be_ours(self, process: str | None) -> bool:
        """Tell whether a log line may be about us: some name a process by its last 15 letters, some not at all."""
        return process is None or process.split(":")[0] in self._package or self._package in process

    def _stream(self, apk: Path, deadline: Deadline, deadline_s: float) -> str:
        """Send the file straight into the installer, and return what that says."""
        size = apk.stat().st_size
        what = f"installing {apk.name}"
        said = bytearray()
        with self._transport.open(f"exec:cmd package install -r -S {size} 2>&1", deadline_s) as connection:
            try:
                with apk.open("rb") as stream:
                    # An installer that refuses at once says so while we still send.
                    while not _says_something(connection) and (chunk := stream.read(_READ_BYTES)):
                        connection.settimeout(max(deadline.left_s(), 0.001))
                        connection.sendall(chunk)
                while chunk := _received(connection, deadline):
                    said += chunk
            except TimeoutError as error:
                raise self._failed(
                    f"{what} did not end in {deadline_s:g} s", "See whether the phone's screen asks something."
                ) from error
            except OSError as error:
                if not said:
                    raise self._failed(f"the connection broke while {what}", "Check the cable.") from error
        return said.decode("utf-8", "replace")

    def _failed(self, text: str, hint: str) -> DeviceError:
        return DeviceError(f"{self._transport.serial}: {text}", hint=hint)


def _says_something(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0)[0])


def _received(connection: socket.socket, deadline: Deadline) -> bytes:
    connection.settimeout(max(deadline.left_s(), 0.001))
    return connection.recv(1 << 16)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "the installer said nothing"
