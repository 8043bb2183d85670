"""What a session needs from a device, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from profiler.devices.link import Link
from profiler.errors import DeviceError
from profiler.records.bundle import Bundle
from profiler.records.device import Conditions, DeviceProfile, Unit
from profiler.records.job import EngineName, OnDisconnect
from profiler.records.message import RunnerHello
from profiler.records.recipe import Recipe
from profiler.records.run import ProcessExit, SystemMemory


class Away(DeviceError):
    """The device cannot be reached now; what runs on it may go on, and is to be collected later."""


class Place(NamedTuple):
    """Where one runner process keeps its files: a folder here, and `<run id>/<number>` on a device of its own."""

    folder: Path
    name: str


class Transfer(NamedTuple):
    """How far a bundle's way to a device is."""

    done_bytes: int
    total_bytes: int
    file: str


class Ended(NamedTuple):
    """How a runner process left: an exit code (negative: a signal) where it is known, and what the system says."""

    code: int | None
    exit: ProcessExit | None = None
    memory: SystemMemory | None = None


class Runner(Protocol):
    """A runner that said hello."""

    link: Link
    hello: RunnerHello
    launch_ns: int

    def end(self) -> Ended:
        """Hang up, wait for the process, and tell how it left. Raises Away."""


class Device(Protocol):
    """A phone or machine that can run one fresh runner process at a time.

    Whatever is called may raise DeviceError, and Away where the device is gone.
    """

    profile: DeviceProfile
    on_disconnect: OnDisconnect

    def engine_for(self, recipe: Recipe) -> EngineName:
        """Return the engine that runs a recipe there. Raises InputError where none does."""

    def unit(self) -> Unit:
        """Describe the unit at hand."""

    def conditions(self, storage: Path) -> Conditions:
        """Read the state it is in."""

    def settled(self, tell: Callable[[str], None]) -> AbstractContextManager[None]:
        """Bring it into a state to measure in, saying what is changed and waited for, and put all back afterwards."""

    def bring(self, folder: Path, bundle: Bundle, tell: Callable[[Transfer], None]) -> str:
        """Make a bundle's files available to a runner; return its folder as the runner names it."""

    def forget_files(self, files: Iterable[Path]) -> Literal["dropped", "unknown"]:
        """Drop files from the page cache, so that a cold load reads the disk; say whether that is sure."""

    def launch(self, place: Place, token: str) -> Runner:
        """Start a fresh runner over the files that are in a place, and shake hands."""

    def fetch(self, place: Place) -> None:
        """Bring what a runner wrote into the folder of its place, as far as it came."""

    def is_at_work(self, place: Place) -> bool:
        """Tell whether a runner that outlived its host is still at work over a place, and is to be let finish."""

    def recover(self, place: Place) -> Ended:
        """End a runner that an interrupted session left behind, and fetch what it wrote; tell how it had ended."""

    def clean(self, run_id: str) -> None:
        """Remove what a run that is safely stored left on the device."""

    def close(self) -> None:
        """Give the device up, so that others may have it."""
