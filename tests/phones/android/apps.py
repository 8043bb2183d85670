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

from tests.phones.android.installed import Installed, Package
from tests.phones.android.packages import Apk
from tests.phones.android.rootfs import Rootfs

RUNNER_PACKAGE = "org.ondeviceprofiler.runner"
_LOG = "runner.log"
KOTLIN_JAR = Path(__file__).parents[3] / "build" / "android" / "virtual.jar"


class NoActivityError(LookupError):
    """No such activity is installed."""


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
        if not jar.exists():  # the app dies, and its log says why
            return ["sh", "-c", 'echo "$0 is missing: run make android-jars" >&2; exit 1', str(jar)]
        program = [java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(jar)]
        return [*program, "org.ondeviceprofiler.virtual.MainKt", *folders, "--model", launching.control]

    return argv


RUNNERS: dict[str, RunnerArgv] = {"python": python_runner, "kotlin": kotlin_runner(KOTLIN_JAR)}
"""What may be the runner app's process on the phone."""


class Apps:
    """The packages and app processes of one phone, as `apps_contract.Apps` asks for them."""

    def __init__(
        self, files: Rootfs, packages: Installed, processes: ProcessTable, runner: RunnerArgv, control: str
    ) -> None:
        self.packages = packages
        self._files = files
        self._processes = processes
        self._runner = runner
        self._control = control
        self._running: dict[int, tuple[App, subprocess.Popen[bytes]]] = {}
        self._watchers: list[threading.Thread] = []
        self._lock = threading.RLock()

    # packages

    def installed(self) -> Mapping[str, str]:
        """Return the path of each installed package's file by package."""
        return self.packages.paths()

    def versions(self) -> Mapping[str, int]:
        """Return the version code of each installed package."""
        return {name: self.packages[name].apk.version_code for name in self.packages.paths()}

    def install(self, apk: bytes, *, downgrade: bool = False) -> str:
        """Install a package and return its name; an older one of it is stopped. Raises InstallRefusedError."""
        return self._replaced(self.packages.install(apk, downgrade=downgrade))

    def install_from(self, path: str, *, downgrade: bool = False) -> str:
        """Install a package that lies at a path of the phone. Raises InstallRefusedError and FileNotFoundError."""
        return self._replaced(self.packages.install_from(path, downgrade=downgrade))

    def uninstall(self, package: str) -> bool:
        """Stop and remove a package with its files; False where there is none."""
        self.stop(package)
        return self.packages.remove(package)

    def clear(self, package: str) -> bool:
        """Stop a package and remove its files; False where there is none."""
        self.stop(package)
        return self.packages.clear(package)

    def _replaced(self, apk: Apk) -> str:
        self.stop(apk.package)
        return apk.package

    # processes

    def start(self, component: str, extras: Mapping[str, str]) -> int:
        """Start an activity's process, or return the one that runs; `storage` in `extras` is the runner's folder.

        Raises NoActivityError.
        """
        package = self._package_of(component)
        with self._lock:
            for pid, name in self.running().items():
                if name == package.apk.package:
                    return pid
            return self._spawn(package, extras)

    def stop(self, package: str) -> None:
        """End all processes of a package, as `am force-stop` does."""
        for pid, name in self.running().items():
            if name == package:
                self.kill(pid, "force-stop")

    def kill(self, pid: int, why: str = "kill") -> None:
        """End a process (`kill`, `force-stop`, `crash`, `anr`) and tell the model why; one that is gone is left."""
        if self.end_real(pid, signal.SIGSEGV if why == "crash" else signal.SIGKILL):
            self._processes.end_process(pid, why)

    def end_real(self, pid: int, number: int = signal.SIGKILL) -> bool:
        """End the real process behind one that the model has ended already; False if it is gone."""
        with self._lock:
            found = self._running.pop(pid, None)
        if found is None:
            return False
        _, process = found
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)  # a frozen one would keep other signals for later
        process.wait()
        return True

    def freeze(self, package: str) -> None:
        """Stop a package's processes where they stand, as an app does that answers no more (SIGSTOP)."""
        for pid in self._signal(package, signal.SIGSTOP):
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self, package: str) -> None:
        """Let frozen processes go on."""
        self._signal(package, signal.SIGCONT)

    def running(self) -> Mapping[int, str]:
        """Return the package of each app process that lives, by pid."""
        with self._lock:
            return {pid: app.package for pid, (app, process) in self._running.items() if process.poll() is None}

    def close(self) -> None:
        """End every process that the phone started, and wait until all is reaped."""
        for pid in self.running():
            self.end_real(pid)
        for watcher in self._watchers:
            watcher.join()
        self._watchers.clear()

    def _package_of(self, component: str) -> Package:
        name, _, activity = component.partition("/")
        short = activity.removeprefix(name) if activity.startswith(f"{name}.") else activity
        if name not in self.packages.paths() or short not in self.packages[name].apk.activities:
            raise NoActivityError(component)
        return self.packages[name]

    def _spawn(self, package: Package, extras: Mapping[str, str]) -> int:
        name = package.apk.package
        storage = self._files.host_path(extras.get("storage") or f"/sdcard/Android/data/{name}/files")
        storage.mkdir(parents=True, exist_ok=True)
        argv = self._runner(Launching(storage, self._files.root, self._control))
        with (storage / _LOG).open("ab") as log:
            os.fchmod(log.fileno(), 0o666)
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

    def _signal(self, package: str, number: signal.Signals) -> list[int]:
        with self._lock:
            processes = [process for app, process in self._running.values() if app.package == package]
            for process in processes:
                process.send_signal(number)
        return [process.pid for process in processes]
