"""What a session needs from a device, whatever it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Protocol

from profiler.devices.link import Link
from profiler.records.device import Conditions, DeviceProfile, Unit
from profiler.records.job import OnDisconnect
from profiler.records.message import RunnerHello


class Runner(Protocol):
    """A runner that said hello."""

    link: Link
    hello: RunnerHello
    launch_ns: int

    def end(self) -> int | None:
        """Hang up and return the process's exit code, negative for a signal; None where it is not known."""


class Device(Protocol):
    """A phone or machine that can run one fresh runner process at a time."""

    profile: DeviceProfile
    on_disconnect: OnDisconnect

    def unit(self) -> Unit:
        """Describe the unit at hand."""

    def conditions(self, storage: Path) -> Conditions:
        """Read the state it is in."""

    def forget_files(self, files: Iterable[Path]) -> Literal["dropped", "unknown"]:
        """Drop files from the page cache, so that a cold load reads the disk; say whether that is sure."""

    def launch(self, storage: Path, token: str) -> Runner:
        """Start a fresh runner over a storage folder and shake hands. Raises DeviceError."""

    def end_leftover(self, storage: Path) -> None:
        """End a runner that an interrupted session left behind."""
