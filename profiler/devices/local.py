"""This machine as a device: each measurement in a fresh Python runner process."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import psutil

from profiler import codec
from profiler.clock import Clock, Deadline
from profiler.devices.device import Ended, Place, Transfer
from profiler.devices.link import Link, connect
from profiler.devices.power_saving import power_saving
from profiler.errors import DeviceError, InputError, ProtocolError, RunnerLost
from profiler.records.bundle import Bundle
from profiler.records.device import Conditions, DeviceProfile, Power, Unit
from profiler.records.job import EngineName, OnDisconnect
from profiler.records.message import ADDRESS_FILE, TOKEN_FILE, RunnerAddress, RunnerHello
from profiler.records.recipe import Recipe
from profiler.runner import clock_limits
from profiler.runner.engines.installed import engine_for
from profiler.runner.gauges import EnvironmentGauge, usable_cores

LOG_FILE = "runner.log"
# -P: a folder called profiler where the user stands must not be taken for ours.
RUNNER = (sys.executable, "-P", "-m", "profiler.runner")


class Patience(NamedTuple):
    """How long a runner may take to come up, and to leave when it is asked to."""

    start_s: float = 60.0
    end_s: float = 10.0


class LocalRunner:
    """One runner process and the conversation with it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        link: Link,
        hello: RunnerHello,
        launch_ns: int,
        end_s: float = Patience().end_s,
    ) -> None:
        self._process = process
        self.link = link
        self.hello = hello
        self.launch_ns = launch_ns
        self._end_s = end_s

    def end(self) -> Ended:
        """Hang up, wait for the process, and return its exit code (negative: the signal that killed it).

        None where it did not leave in time and was killed from here: that signal is no fault of the model's.
        """
        self.link.close()
        return Ended(_wait(self._process, seconds=self._end_s))


class LocalDevice:
    """This machine; `program` is what is started as its runner."""

    on_disconnect = OnDisconnect(kind="stop_after_s", seconds=2.0)

    def __init__(
        self,
        profile: DeviceProfile,
        clock: Clock,
        *,
        program: Sequence[str] = RUNNER,
        patience: Patience = Patience(),
    ) -> None:
        self.profile = profile
        self._clock = clock
        self._program = program
        self._patience = patience

    def engine_for(self, recipe: Recipe) -> EngineName:
        """Return the engine that runs a recipe here. Raises InputError, MissingExtra or UnknownName."""
        return engine_for(recipe.runtime, recipe.backend)

    def unit(self) -> Unit:
        """Describe this machine."""
        return Unit(
            profile=self.profile.name,
            platform="host",
            is_phone=False,
            virtual=False,
            model=_first_line(Path("/sys/devices/virtual/dmi/id/product_name")),
            processor=_processor_name(),
            logical_cores=len(usable_cores()),
            memory_bytes=psutil.virtual_memory().total,
            operating_system=_operating_system(),
            os_build=platform.release(),
        )

    def conditions(self, storage: Path) -> Conditions:
        """Read the state this machine is in; `storage` is where free space is counted."""
        gauge = EnvironmentGauge(self._clock)
        percent, external = gauge.battery()
        saving, source = power_saving()
        return Conditions(
            power=Power(battery_percent=percent, external_power=external, reason=gauge.missing.get("battery_percent")),
            temperature_millicelsius=gauge.temperature_millicelsius(),
            temperature_reason=gauge.missing.get("temperature_millicelsius"),
            available_memory_bytes=psutil.virtual_memory().available,
            free_storage_bytes=psutil.disk_usage(str(storage)).free,
            load_average_1m=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            cpu_governor=_first_line(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
            power_save=saving,
            power_save_source=source,
            cpu_frequency_limit_khz=clock_limits.frequency_limit_khz(),
            cpu_frequency_max_khz=clock_limits.frequency_max_khz(),
        )

    def settled(self, tell: Callable[[str], None]) -> contextlib.AbstractContextManager[None]:
        """Change nothing: a computer is its user's."""
        return contextlib.nullcontext()

    def bring(self, folder: Path, bundle: Bundle, tell: Callable[[Transfer], None]) -> str:
        """Leave a bundle where it is."""
        return str(folder)

    def forget_files(self, files: Iterable[Path]) -> Literal["dropped", "unknown"]:
        """Drop files from the page cache; `unknown` where the kernel keeps them or will not tell."""
        dropped = [_drop(path) for path in files]
        return "dropped" if dropped and all(dropped) else "unknown"

    def launch(self, place: Place, token: str) -> LocalRunner:
        """Start a runner over a place's folder and shake hands. Raises RunnerLost or ProtocolError."""
        storage = place.folder
        (storage / TOKEN_FILE).write_text(token)
        start_ns = self._clock.boot_ns()
        process = _start(self._program, storage)
        with contextlib.ExitStack() as undo:
            undo.callback(_wait, process, seconds=0)
            address = self._wait_for_address(storage, process)
            link = connect(address.port, lambda: process.poll() is None, self._clock)
            undo.callback(link.close)
            hello = link.hello(token)
            undo.pop_all()
        return LocalRunner(process, link, hello, self._clock.boot_ns() - start_ns, self._patience.end_s)

    def _wait_for_address(self, storage: Path, process: subprocess.Popen[bytes]) -> RunnerAddress:
        deadline = Deadline(self._patience.start_s, self._clock)
        while not (storage / ADDRESS_FILE).is_file():
            if process.poll() is not None:
                raise RunnerLost(f"the runner ended at once (exit {process.returncode}): {log_tail(storage)}")
            if deadline.passed():
                raise RunnerLost(f"the runner did not come up in {self._patience.start_s:g} s: {log_tail(storage)}")
            self._clock.sleep(0.005)
        try:
            return codec.read(storage / ADDRESS_FILE, RunnerAddress)
        except InputError as error:
            raise ProtocolError(f"the runner does not say where it listens: {error}") from error

    def fetch(self, place: Place) -> None:
        """Leave a runner's files where it wrote them."""

    def is_at_work(self, place: Place) -> bool:
        """Say no: a runner here leaves soon after its host."""
        return False

    def recover(self, place: Place) -> Ended:
        """End the runner that an interrupted session left over a place's folder, if it is still there."""
        storage = place.folder
        deadline = Deadline(self._patience.end_s, self._clock)
        for process in psutil.process_iter():
            if _serves(process, storage):
                _kill(process)
                while _serves(process, storage) and not deadline.passed():
                    self._clock.sleep(0.005)
        return Ended(None)

    def clean(self, run_id: str) -> None:
        """Do nothing: a session's folder is all that there is."""

    def close(self) -> None:
        """Do nothing: this machine is not taken."""


def _drop(path: Path) -> bool:
    if not hasattr(os, "posix_fadvise"):
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)  # pages not yet written cannot be dropped
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return not _any_page_cached(descriptor, os.fstat(descriptor).st_size)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _any_page_cached(descriptor: int, size: int) -> bool:
    """Ask mincore(2): it brings nothing in, as a probing read would, and where it must not tell it says yes."""
    if size == 0:
        return False
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        start = ctypes.c_char.from_buffer(mapped)
        address = ctypes.c_void_p(ctypes.addressof(start))
        failed = ctypes.CDLL(None).mincore(address, ctypes.c_size_t(size), pages)
        del start  # the mapping cannot be closed while anything points into it
    return failed != 0 or any(pages)


def log_tail(storage: Path) -> str:
    """Return the last line the runner printed."""
    path = storage / LOG_FILE
    lines = path.read_text(errors="replace").strip().splitlines() if path.is_file() else []
    return lines[-1] if lines else "it printed nothing"


def _start(program: Sequence[str], storage: Path) -> subprocess.Popen[bytes]:
    with (storage / LOG_FILE).open("wb") as log:
        try:
            # A session of its own: Ctrl-C is for the host, which then ends the runner in good order.
            return subprocess.Popen(
                [*program, "--storage", str(storage)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            raise DeviceError(f"cannot start {program[0]} as runner: {error.strerror}") from error


def _wait(process: subprocess.Popen[bytes], *, seconds: float) -> int | None:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # not even that ends one that waits for a broken disk
            process.wait(Patience().end_s)
        return None


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        pass  # it left by itself meanwhile


def _serves(process: psutil.Process, storage: Path) -> bool:
    """Tell whether a process is the runner over `storage`; a dead one that nobody has waited for is not."""
    try:
        arguments = process.cmdline()
    except psutil.Error:
        return False
    if "profiler.runner" not in arguments:
        return False
    # The session may have been started over a link to the store.
    return os.path.realpath(storage) in map(os.path.realpath, arguments)


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text().splitlines()[0].strip() or None
    except (OSError, IndexError):
        return None


def _processor_name() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or None
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _operating_system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.release()}"
