"""An Android phone as a device: the runner is an app on it, reached through adb."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Literal, NamedTuple

from profiler import codec
from profiler.clock import Clock, Deadline
from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.app import App
from profiler.devices.android.content import Content
from profiler.devices.android.cool_down import LEAST_PERCENT, check_charge, read_charge, wait_until_cool
from profiler.devices.android.files import Files
from profiler.devices.android.former import Former
from profiler.devices.android.phones import Phone
from profiler.devices.android.runner import SESSIONS, AndroidRunner, RunnerFolder
from profiler.devices.android.settings import SettingRefused
from profiler.devices.android.settle import restore, restore_leftover, settle
from profiler.devices.android.shell import Shell
from profiler.devices.android.state import State, conditions_of, read_state, refuse_faked, unit_of
from profiler.devices.device import Ended, Place, Transfer
from profiler.devices.link import Link
from profiler.errors import DeviceError, InputError, ProtocolError, RunnerLost
from profiler.records.bundle import Bundle
from profiler.records.device import Conditions, DeviceProfile, Unit
from profiler.records.job import EngineName, OnDisconnect
from profiler.records.message import ADDRESS_FILE, RunnerAddress
from profiler.records.recipe import Recipe

_ENGINES: dict[str, EngineName] = {"onnx": "onnxruntime", "executorch": "executorch"}


class Patience(NamedTuple):
    """How long the app may take to come up and to leave, and between looks at it."""

    start_s: float = 60.0
    end_s: float = 15.0
    look_s: float = 0.05


class AndroidDevice:
    """One phone that answers; `unit_id` is what it is known by in records, `lease` keeps others off it."""

    on_disconnect = OnDisconnect(kind="finish_then_exit")

    def __init__(
        self,
        profile: DeviceProfile,
        phone: Phone,
        unit_id: str,
        server: Server,
        clock: Clock,
        *,
        lease: IO[str] | None = None,
        least_battery: int = LEAST_PERCENT,
        patience: Patience = Patience(),
    ) -> None:
        self._lease = lease  # held as long as the device is
        self._least_battery = least_battery
        self._tell: Callable[[str], None] = lambda what: None
        self.profile = profile
        self.phone = phone
        self._unit_id = unit_id
        self._clock = clock
        self._patience = patience
        self._transport: Transport = phone.transport(server)
        self.shell = Shell(self._transport, clock)
        self._files = Files(self._transport, self.shell)
        self.app = App(self.shell, clock)

    def engine_for(self, recipe: Recipe) -> EngineName:
        """Return the engine that runs a recipe on Android. Raises InputError."""
        if recipe.runtime not in _ENGINES or recipe.backend == "coreml":
            what = "Core ML" if "coreml" in (recipe.runtime, recipe.backend) else recipe.runtime
            raise InputError(
                f"{what} does not run on Android",
                hint="Choose --runtime onnx, or --runtime executorch with --backend xnnpack or vulkan.",
            )
        return _ENGINES[recipe.runtime]

    def unit(self) -> Unit:
        """Describe the phone."""
        if self.phone.facts is None:
            raise DeviceError(f"{self.phone.serial} said nothing about itself")
        return unit_of(self.profile, self.phone.facts, self.state(), self._unit_id)

    def state(self) -> State:
        """Read the phone's state. Raises DeviceError where something about it is overridden."""
        state = read_state(self.shell)
        refuse_faked(state, self.phone.serial)
        return state

    def conditions(self, storage: Path) -> Conditions:
        """Read the state it is in; what somebody overrode is unknown in it, with the reason."""
        return conditions_of(read_state(self.shell))

    @contextlib.contextmanager
    def settled(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Check that the runner app is there and idle, wake and cool the phone, and put back what was changed after."""
        self._tell = tell
        self.app.require()
        self._check_idle()
        done = settle(self._run, self.phone.serial, self._clock, lambda sentences: _tell_changes(tell, sentences))
        _tell_all(tell, done.notes)
        try:
            _tell_all(tell, self._check_charge())
            yield
        finally:
            self._restore(done.former)

    def _restore(self, former: Former) -> None:
        try:
            restore(self._run, former)
        except SettingRefused as error:
            self._tell(f"not restored: {error}")
        except DeviceError:
            pass  # a phone that is gone keeps what to restore, and the next session on it does that first

    def _check_charge(self) -> tuple[str, ...]:
        charge = read_charge(self._run, self.phone.serial)
        return check_charge(charge, self.phone.serial, least_percent=self._least_battery)

    def _check_idle(self) -> None:
        """Raise DeviceError where a runner is at work that another session started: it must not be cut short."""
        pid = self.app.pid()
        if pid is None:
            return
        said = self.shell.run(f"grep -l '\"pid\":{pid}[,}}]' {SESSIONS}/*/*/{ADDRESS_FILE} 2>/dev/null").text.split()
        for path in said:
            folder = RunnerFolder(self.shell, self._files, Place(Path(), path[len(SESSIONS) + 1 :].rpartition("/")[0]))
            if not folder.has_ended():
                raise DeviceError(
                    f"the phone {self.phone.serial} is still at work on run {folder.name.partition('/')[0]}",
                    hint="Wait for it: profile collect. Or end it, keeping what it measured: profile collect --stop.",
                )

    def _run(self, command: str) -> str:
        output = self.shell.run(command)
        return output.text + output.stderr.decode(errors="replace")

    def bring(self, folder: Path, bundle: Bundle, tell: Callable[[Transfer], None]) -> str:
        """Put a bundle on the phone, sending only what is not there; return its folder on the phone."""
        content = Content(self.shell, self._files)
        placed = content.put(folder, bundle, lambda done, total, file: tell(Transfer(done, total, file)))
        return placed.path

    def forget_files(self, files: Iterable[Path]) -> Literal["dropped", "unknown"]:
        """Say that nobody knows: only root may drop a phone's page cache."""
        return "unknown"

    def launch(self, place: Place, token: str) -> AndroidRunner:
        """Start the runner app afresh over a folder of its own and shake hands."""
        folder = RunnerFolder(self.shell, self._files, place)
        _tell_all(self._tell, wait_until_cool(self._run, self.phone.serial, self._clock, self._tell).notes)
        folder.prepare(token)
        try:
            return self._started(folder, token)
        except DeviceError:  # what it printed tells more than its silence; and a wrong app is not to go on
            with contextlib.suppress(DeviceError):
                self.app.stop()
                folder.fetch()
            raise

    def _started(self, folder: RunnerFolder, token: str) -> AndroidRunner:
        start_ns = self._clock.boot_ns()
        self.app.launch(folder.path, self._patience.start_s)
        address = self._wait_for_address(folder)
        runner = AndroidRunner(self.app, self.shell, self._clock, address.pid, self._patience.end_s)
        runner.meet(self._link(address, runner), token)
        runner.launch_ns = self._clock.boot_ns() - start_ns
        return runner

    def _link(self, address: RunnerAddress, runner: AndroidRunner) -> Link:
        try:
            return Link(self._opener(address.port), lambda: True, alive_when_cut=runner.lives, clock=self._clock)
        except OSError as error:
            raise RunnerLost(
                f"nothing listens on port {address.port} of {self.phone.serial}, where the runner app said that it does"
            ) from error

    def _opener(self, port: int) -> Callable[[], socket.socket]:
        def open_connection() -> socket.socket:
            try:
                return self._transport.open(f"tcp:{port}")
            except DeviceError as error:
                raise ConnectionError(str(error)) from error

        return open_connection

    def _wait_for_address(self, folder: RunnerFolder) -> RunnerAddress:
        deadline = Deadline(self._patience.start_s, self._clock)
        while (said := folder.read(ADDRESS_FILE)) is None:
            if deadline.passed():
                raise RunnerLost(
                    f"the runner app on {self.phone.serial} did not come up in {self._patience.start_s:g} s: "
                    f"{folder.log_tail()}",
                    hint="Look at the phone's screen; a dialog may wait there.",
                )
            if self.app.pid() is None and (reason := folder.log_tail(None)) is not None:
                raise RunnerLost(f"the runner app on {self.phone.serial} ended at once: {reason}")
            self._clock.sleep(self._patience.look_s)
        try:
            return codec.decode(said, RunnerAddress, where=f"{folder.path}/{ADDRESS_FILE}")
        except InputError as error:
            raise ProtocolError(f"the runner does not say where it listens: {error}") from error

    def fetch(self, place: Place) -> None:
        """Pull the journal, images and log of a runner's folder."""
        RunnerFolder(self.shell, self._files, place).fetch()

    def is_at_work(self, place: Place) -> bool:
        """Tell whether the app still works over this folder: it lives, and its journal has no end yet."""
        folder = RunnerFolder(self.shell, self._files, place)
        return self._serves(folder.address()) and not folder.has_ended()

    def recover(self, place: Place) -> Ended:
        """Stop the app where it still serves this folder, pull what is there, and tell how one that is gone ended."""
        folder = RunnerFolder(self.shell, self._files, place)
        address = folder.address()
        was_stopped = self._serves(address)
        if was_stopped:
            self.app.stop()
        folder.fetch()
        with contextlib.suppress(DeviceError):  # the next session on the phone tries again
            restore_leftover(self._run, self.phone.serial)
        return Ended(None) if was_stopped or address is None else self.app.exit_of(address.pid, wait_s=0)

    def _serves(self, address: RunnerAddress | None) -> bool:
        return address is not None and address.pid == self.app.pid()

    def clean(self, run_id: str) -> None:
        """Remove a run's folder from the phone."""
        self.shell.check(f"rm -rf {SESSIONS}/{run_id}")

    def close(self) -> None:
        """Give the connection to the phone up, and the phone to others."""
        self.shell.close()
        if self._lease is not None:
            self._lease.close()


def _tell_all(tell: Callable[[str], None], sentences: Iterable[str]) -> None:
    for sentence in sentences:
        tell(sentence)


def _tell_changes(tell: Callable[[str], None], sentences: Iterable[str]) -> None:
    _tell_all(tell, (f"for this run, and put back after it: {sentence}" for sentence in sentences))
