"""A phone that fails while it is measured, and the command line that tells of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from profiler import codec
from profiler.bundle_files import MANIFEST, load_manifest
from profiler.cli import main
from profiler.clock import Deadline, RealClock
from profiler.devices.android.phones import find_phones
from profiler.errors import DeviceError
from profiler.session import Progress, Report
from profiler.store import Store
from tests.devices.android.phones_for_tests import Desk
from tests.phones.android.phone import VirtualAndroid
from tests.victims import check_whole as check_kept

LEAST = ("--cold-starts", "1", "--warmups", "0", "--repeats", "1", "--observer-pairs", "0", "--threads", "1")


class Said(NamedTuple):
    """What a command ended with: its exit code, and what it told people."""

    code: int
    text: str


class CommandLine:
    """`profile` in this process, with an adb server and folders of its own."""

    def __init__(self, desk: Desk, root: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        patch.setenv("ANDROID_ADB_SERVER_PORT", str(desk.server.address.port))
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        self._desk, self._capture = desk, capture

    def measure(self, phone: VirtualAndroid, bundle: Path, *more: str, device: str = "android") -> Said:
        """Measure on a phone, over whatever way the server has to it."""
        return self.run("--device", device, "--serial", phone.serial, "--bundle", str(bundle), *LEAST, *more)

    def install(self, phone: VirtualAndroid, apk: Path) -> Said:
        """Install an app on a phone."""
        return self._said("install", "--serial", phone.serial, str(apk))

    def run(self, *arguments: str) -> Said:
        """Run any command over the desk's store."""
        return self._said(*arguments, "--store", str(self._desk.store.root))

    def devices(self) -> Said:
        """List the phones."""
        return self._said("devices")

    def _said(self, *arguments: str) -> Said:
        self._capture.readouterr()
        code = main(arguments)
        told = self._capture.readouterr()
        # A table or message is wrapped where the terminal ends: the words are what counts.
        return Said(code, " ".join((told.err + told.out).split()))


def once(happens: Callable[[Progress], bool], action: Callable[[], None]) -> Report:
    """Do something to a phone at the first moment of a session at which this is so."""
    todo = [action]

    def report(state: Progress) -> None:
        if todo and happens(state):
            todo.pop()()

    return report


def at_event(kind: type, action: Callable[[], None], count: int = 1) -> Report:
    """Do something to a phone when a runner has told of the so manieth event of a kind."""
    seen = [0]

    def happens(state: Progress) -> bool:
        seen[0] += isinstance(state.event, kind)
        return seen[0] == count

    return once(happens, action)


def until(so: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so. Raises TimeoutError."""
    clock = RealClock()
    limit = Deadline(seconds, clock)
    while not so():
        if limit.passed():
            raise TimeoutError("it never came to be so")
        clock.sleep(0.02)


def plug_in(desk: Desk, phone: VirtualAndroid) -> None:
    """Put a phone's cable back in, and wait until the server sees it."""
    phone.plug()
    until(lambda: _is_ready(desk, phone))


def _is_ready(desk: Desk, phone: VirtualAndroid) -> bool:
    with contextlib.suppress(DeviceError):
        desk.server.connect(phone.address)
    return any(found.ready and found.serial == phone.serial for found in find_phones(desk.server))


def sessions(store: Store) -> list[str]:
    """Name the sessions that are still open."""
    folder = store.root / "sessions"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def half_written(root: Path) -> list[Path]:
    """List what a write that was cut short has left below a folder."""
    return sorted(path for path in root.rglob("*") if path.suffix in (".part", ".tmp"))


def check_whole(store: Store, run_id: str) -> None:
    """Check that a run holds just what its journals say, its image if it went through, and nothing half written."""
    check_kept(store, run_id)
    assert half_written(store.root) == []
    run = store.load(run_id)
    assert run.outcome != "completed" or any(image.role == "output" for image in run.images)


def with_parameters(bundle: Path, count: int) -> Path:
    """Let a bundle's denoiser have so many parameters: by them a synthetic runner reckons time and memory."""
    manifest = load_manifest(bundle)
    denoiser = replace(manifest.components["denoiser"], parameters=count)
    manifest = replace(manifest, components={**manifest.components, "denoiser": denoiser})
    (bundle / MANIFEST).write_bytes(codec.encode_pretty(manifest))
    return bundle
