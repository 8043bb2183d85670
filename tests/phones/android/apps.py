"""Installed packages and the processes of apps; each app process of the phone is a real one, with the same pid."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.phones.android.packages import Apk, ApkError
from tests.phones.android.rootfs import Rootfs

RUNNER_PACKAGE = "org.ondeviceprofiler.runner"
RUNNER_COMPONENT = f"{RUNNER_PACKAGE}/.RunnerActivity"
FIRST_APP_UID = 10234
_LOG = "runner.log"


class CannotStart(Exception):
    """An activity that is not there, or a process that would not live; `am` prints the text."""


class Package(NamedTuple):
    """One installed package; `path` is its file on the phone."""

    apk: Apk
    uid: int
    path: str


class App(NamedTuple):
    """One running app process."""

    pid: int
    package: str
    uid: int


class Launching(NamedTuple):
    """What a runner's command line is made of: folders of this machine, and where the model is controlled."""

    storage: Path
    root: Path
    control: str


RunnerArgv = Callable[[Launching], Sequence[str]]
"""Return the command that is the app's process."""


class ProcessTable(Protocol):
    """What of the device model has to hear of processes."""

    def start_process(self, pid: int, package: str, uid: int) -> None:
        """Note a started process."""

    def end_process(self, pid: int, why: str = "exit", *, status: int = 0) -> None:
        """Note that a process ended: by itself, or by `kill`, `force-stop`, `crash`, `anr`."""


def python_runner(launching: Launching) -> Sequence[str]:
    """Return the command of the Python runner: real inference, on this machine's clock."""
    folders = ["--storage", str(launching.storage), "--root", str(launching.root)]
    return [sys.executable, "-P", "-m", "profiler.runner", *folders]


def kotlin_runner(jar: Path) -> RunnerArgv:
    """Return what makes the command of the Kotlin core in `jar`: synthetic inference, on the model's clock."""

    def argv(launching: Launching) -> Sequence[str]:
        java = shutil.which("java") or "java"
        folders = ["--storage", str(launching.storage), "--root", str(launching.root)]
        program = [java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(jar)]
        return [*program, "org.ondeviceprofiler.virtual.MainKt", *folders, "--model", launching.control]

    return argv


class Apps:
    """The packages and app processes of one phone."""

    def __init__(self, files: Rootfs, processes: ProcessTable, runner: RunnerArgv, control: Callable[[], str]) -> None:
        self.packages: dict[str, Package] = {}
        self._files = files
        self._processes = processes
        self._runner = runner
        self._control = control
        self._running: dict[int, tuple[App, subprocess.Popen[bytes]]] = {}
        self._watchers: list[threading.Thread] = []
        self._lock = threading.RLock()

    # packages

    def add(self, apk: Apk, content: Path | None = None) -> Package:
        """Put a package on the phone, in place of an older one, which is stopped; `content` is its file, moved in."""
        before = self.packages.get(apk.package)
        folder = f"/data/app/~~phone/{apk.package}-{apk.version_code}"
        host = self._files.host_path(folder)
        host.mkdir(parents=True, exist_ok=True)
        if content is not None:
            shutil.move(content, host / "base.apk")
        uid = before.uid if before else FIRST_APP_UID + len(self.packages)
        self.stop(apk.package)
        self.packages[apk.package] = Package(apk, uid, f"{folder}/base.apk")
        return self.packages[apk.package]

    def remove(self, name: str) -> bool:
        """Take a package with its data off the phone; False if it is not there."""
        self.stop(name)
        package = self.packages.pop(name, None)
        if package is None:
            return False
        shutil.rmtree(self._files.host_path(package.path).parent, ignore_errors=True)
        shutil.rmtree(self._files.host_path(f"/sdcard/Android/data/{name}"), ignore_errors=True)
        return True

    def check_version(self, apk: Apk, *, downgrade: bool) -> None:
        """Raise ApkError where a newer version is installed and `downgrade` is not allowed."""
        there = self.packages.get(apk.package)
        if there and apk.version_code < there.apk.version_code and not downgrade:
            raise ApkError(
                "INSTALL_FAILED_VERSION_DOWNGRADE: Downgrade detected: Update version code "
                f"{apk.version_code} is older than current {there.apk.version_code}"
            )

    # processes

    def start(self, component: str, extras: Mapping[str, str]) -> int:
        """Start an activity's process, or return the one that runs; `storage` in `extras` is the runner's folder.

        Raises CannotStart.
        """
        package = self._package_of(component)
        with self._lock:
            for app in self.running():
                if app.package == package.apk.package:
                    return app.pid
            return self._spawn(package, extras)

    def stop(self, package: str) -> None:
        """End all processes of a package, as `am force-stop` does."""
        for app in self.running():
            if app.package == package:
                self.kill(app.pid, "force-stop")

    def kill(self, pid: int, why: str = "kill") -> None:
        """End a process at once (SIGKILL; a `crash` by SIGSEGV), and tell the model why; one that is gone is left."""
        with self._lock:
            found = self._running.pop(pid, None)
        if found is not None:
            _, process = found
            process.send_signal(signal.SIGSEGV if why == "crash" else signal.SIGKILL)
            if why == "crash":
                process.send_signal(signal.SIGCONT)
            process.wait()
            self._processes.end_process(pid, why)

    def end_without_telling(self, pid: int) -> None:
        """End the real process behind one that the model has ended already."""
        with self._lock:
            found = self._running.pop(pid, None)
        if found is not None:
            found[1].kill()
            found[1].wait()

    def freeze(self, package: str) -> None:
        """Stop a package's processes where they stand, as an app does that answers no more (SIGSTOP)."""
        self._signal(package, signal.SIGSTOP)

    def thaw(self, package: str) -> None:
        """Let frozen processes go on."""
        self._signal(package, signal.SIGCONT)

    def running(self) -> list[App]:
        """Return the app processes that live."""
        with self._lock:
            return [app for app, process in self._running.values() if process.poll() is None]

    def close(self) -> None:
        """End every process that the phone started, and wait until all is reaped."""
        for app in self.running():
            self.end_without_telling(app.pid)
        for watcher in self._watchers:
            watcher.join()
        self._watchers.clear()

    def _package_of(self, component: str) -> Package:
        name, _, activity = component.partition("/")
        package = self.packages.get(name)
        short = activity.removeprefix(name) if activity.startswith(f"{name}.") else activity
        if package is None or short not in package.apk.activities:
            raise CannotStart(
                f"Activity class {{{name}/{name if short.startswith('.') else ''}{short}}} does not exist."
            )
        return package

    def _spawn(self, package: Package, extras: Mapping[str, str]) -> int:
        name = package.apk.package
        storage = self._files.host_path(extras.get("storage") or f"/sdcard/Android/data/{name}/files")
        storage.mkdir(parents=True, exist_ok=True)
        argv = self._runner(Launching(storage, self._files.root, self._control()))
        with (storage / _LOG).open("ab") as log:
            # What an app writes on a phone's shared storage the shell may change: hence no umask.
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, umask=0, start_new_session=True, env=os.environ
            )
        app = App(process.pid, name, package.uid)
        self._processes.start_process(*app)
        self._running[process.pid] = (app, process)
        watcher = threading.Thread(target=self._watch, args=(app, process), name="phone-app", daemon=True)
        self._watchers.append(watcher)
        watcher.start()
        return process.pid

    def _watch(self, app: App, process: subprocess.Popen[bytes]) -> None:
        """Tell the model of a process that ended by itself."""
        code = process.wait()
        with self._lock:
            found = self._running.pop(app.pid, None)
        if found is None:
            return  # whoever ended it tells
        if code >= 0:
            self._processes.end_process(app.pid, "exit", status=code)
        else:
            self._processes.end_process(app.pid, "kill" if -code in (signal.SIGKILL, signal.SIGTERM) else "crash")

    def _signal(self, package: str, number: signal.Signals) -> None:
        with self._lock:
            for app, process in self._running.values():
                if app.package == package and process.poll() is None:
                    process.send_signal(number)
