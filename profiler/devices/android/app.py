"""The runner app on a phone: installed, started, stopped, and why its process ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from profiler.clock import Clock, Deadline
from profiler.devices.android.exits import read_exit_info
from profiler.devices.android.kill_lines import Kill, read_kill_lines
from profiler.devices.android.kill_reason import Cause, KillReason, kill_reason
from profiler.devices.android.launching import Launch, Refusal, read_install, read_launch
from profiler.devices.android.memory import ProcessMemory, read_meminfo
from profiler.devices.android.numerals import truth
from profiler.devices.android.shell import Shell, quoted
from profiler.devices.android.unavailable import Unavailable
from profiler.devices.device import Ended
from profiler.errors import DeviceError, InputError, MissingSource
from profiler.records.run import ExitKind, ProcessExit, SystemMemory

PACKAGE = "org.ondeviceprofiler.runner"
ACTIVITY = ".RunnerActivity"
_INSTALL_S = 180.0
_START_S = 60.0
_LOOK_S = 0.1
# With these the app's file is at fault, not the phone.
_FILE_CODES = ("INSTALL_PARSE_FAILED", "INSTALL_FAILED_INVALID_APK", "INSTALL_FAILED_TEST_ONLY")
_VERSION = re.compile(r"^package:(?P<package>\S+)(?: versionCode:(?P<code>\d+))?\s*$", re.MULTILINE)
_LOG = (
    "logcat -d -b main,system,events,crash -v threadtime"
    " -s am_kill am_proc_died am_crash am_anr lowmemorykiller lmkd Zygote libc DEBUG"
)
_REPORTS_LOW_MEMORY = "getprop persist.sys.lmk.reportkills"
_KINDS: dict[Cause, ExitKind] = {
    "low_memory": "low_memory",
    "likely_low_memory": "low_memory",
    "crash": "crash",
    "native_crash": "native_crash",
    "anr": "not_responding",
    "request": "stopped",
    "signal": "signalled",
    "freezer": "frozen",
    "excessive_resource": "too_much_work",
    "exit": "other",
    "other": "other",
}


class Version(NamedTuple):
    """An installed version; the code is None on phones that do not tell."""

    code: int | None


class App:
    """The runner app on one phone."""

    def __init__(self, shell: Shell, clock: Clock, *, package: str = PACKAGE, activity: str = ACTIVITY) -> None:
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

    def require(self) -> Version:
        """Return the installed version. Raises DeviceError where the app is not installed."""
        version = self.version()
        if version is None:
            raise self._failed(f"the runner app ({self._package}) is not installed", "Install it: profile install APK")
        return version

    def install(self, apk: Path, deadline_s: float = _INSTALL_S) -> None:
        """Install the app over the one that is there, whose data stays.

        Raises MissingSource or InputError where the file is no good, DeviceError where the phone refuses.
        """
        if not apk.is_file():
            raise MissingSource(f"there is no app {apk} to install")
        command = f"cmd package install -r -S {apk.stat().st_size}"
        said = self._shell.feed(command, apk, deadline_s).decode("utf-8", "replace")
        found = read_install(said, self._package)
        if isinstance(found, Unavailable):
            raise self._failed(
                f"cannot install {apk.name}: {_last_line(said)}", "See the phone's screen, and try again."
            )
        if isinstance(found, Refusal):
            text = f"cannot install {apk.name}: {found.code}" + (f" ({found.detail})" if found.detail else "")
            if found.code.startswith(_FILE_CODES):
                raise InputError(text, hint=found.what_to_do)
            raise self._failed(text, found.what_to_do)

    def launch(self, storage: str, deadline_s: float = _START_S) -> Launch:
        """Start a fresh process over a folder on the phone, ending one that runs.

        Raises DeviceError with the phone's reason.
        """
        words = quoted("-n", self._component, "--es", "storage", storage)
        output = self._shell.run(f"am start -W -S {words}", deadline_s)
        launch = read_launch(f"{output.text}\n{output.stderr.decode('utf-8', 'replace')}")
        if isinstance(launch, Refusal):
            raise self._failed(f"the app {self._package} did not start: {launch.code}", launch.what_to_do)
        if isinstance(launch, Unavailable):
            raise self._failed(f"the app {self._package} did not start: {output.complaint}", "See the phone's screen.")
        return launch

    def stop(self) -> None:
        """End all processes of the app. Raises DeviceError."""
        self._shell.check(f"am force-stop {self._package}")

    def pid(self) -> int | None:
        """Return the app's process, the newest where there are several; None where it does not run.

        Raises DeviceError.
        """
        words = self._shell.run(f"pidof {self._package} {self._package}:runner").text.split()
        pids = [int(word) for word in words if word.isdigit()]
        return max(pids, default=None)

    def memory_of(self, pid: int) -> SystemMemory | None:
        """Return what the system counts as a process's memory, which stalls it for up to two seconds; None if untold.

        Raises DeviceError.
        """
        found = read_meminfo(self._shell.run(f"dumpsys meminfo -s {pid}").text)
        if not isinstance(found, ProcessMemory):
            return None
        return SystemMemory(
            pss_bytes=found.pss_bytes,
            swap_pss_bytes=found.swap_pss_bytes,
            graphics_bytes=found.graphics_bytes,
            definition="dumpsys meminfo after the last image",
        )

    def exit_of(self, pid: int, *, wait_s: float = 2.0) -> Ended:
        """Return how the system says that a process of the app ended: its exit code where it just left, else why.

        It is written down a moment after the end, for which it is waited. Raises DeviceError.
        """
        deadline = Deadline(wait_s, self._clock)
        while True:
            told, logged, reports = self._shell.batch(
                [f"dumpsys activity exit-info {self._package}", _LOG, _REPORTS_LOW_MEMORY]
            )
            found = read_exit_info(told.text)
            exits = () if isinstance(found, Unavailable) else found
            kills = [kill for kill in read_kill_lines(logged.text) if self._may_be_ours(kill)]
            reason = kill_reason(pid, exits, kills, reports_low_memory=truth(reports.text.strip()))
            if reason is not None and reason.cause == "exit":
                return Ended(next((exit_.status for exit_ in exits if exit_.pid == pid), None))
            if reason is not None:
                return Ended(None, _process_exit(pid, reason, told.text, kills))
            if deadline.passed():
                return Ended(None)
            self._clock.sleep(_LOOK_S)

    def _may_be_ours(self, kill: Kill) -> bool:
        """Tell whether a log line may be about the app: numbers are used again, and some lines name no process."""
        return kill.process is None or kill.process.partition(":")[0] in self._package or self._package in kill.process

    def _failed(self, text: str, hint: str) -> DeviceError:
        return DeviceError(f"{self._shell.serial}: {text}", hint=hint)


def _process_exit(pid: int, reason: KillReason, exit_info: str, kills: Sequence[Kill]) -> ProcessExit:
    """Put what is known into a record, with the phone's own text about this process."""
    told = [part.strip() for part in exit_info.split("ApplicationExitInfo ")[1:] if re.search(rf"\bpid={pid}\b", part)]
    lines = [kill.line for kill in kills if kill.pid == pid]
    return ProcessExit(
        kind=_KINDS[reason.cause],
        detail=reason.sentence,
        signal=reason.signal,
        resident_bytes=reason.rss_bytes,
        evidence="\n".join([*told[:1], *lines]),
    )


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "the installer said nothing"
