"""`profile` processes to be killed at any moment, and what a store must look like afterwards."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from profiler.clock import Deadline, RealClock
from profiler.journal import read_journal
from profiler.records.event import IterationDone
from profiler.store import Store

Reached = Callable[[Path], bool]
QUICK = ("--cold-starts", "2", "--warmups", "0", "--repeats", "12", "--observer-pairs", "0", "--threads", "1")
_START = "import sys; from profiler.cli import main; sys.exit(main())"
_PATIENCE_S = 60


def _any(pattern: str) -> Reached:
    return lambda root: any(root.glob(pattern))


def _lines(count: int) -> Reached:
    return lambda root: any(
        path.read_bytes().count(b"\n") >= count for path in root.glob("sessions/*/device/*/*.jsonl")
    )


# From what is on disk, so that the kills also hit the short moments; each is followed by a random wait.
MOMENTS: dict[str, Reached] = {
    "at once": lambda root: True,
    "a session is open": _any("sessions/*"),
    "it is written down": _any("sessions/*/session.json"),
    "the first launch is noted": _any("sessions/*/launch-0.json"),
    "the first event is written": _lines(1),
    "several images are made": _lines(25),
    "the second process starts": _any("sessions/*/launch-1.json"),
    "the run is being built": _any("sessions/*/run"),
}


class Victim:
    """One `profile` process to kill."""

    def __init__(self, bundle: Path, root: Path, options: Sequence[str] = QUICK) -> None:
        self._root = root
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, "--model", str(bundle), "--store", str(root), "--json", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def wait_until(self, reached: Reached, wait_s: float, watch: Callable[[], object] = lambda: None) -> None:
        """Wait for a moment, or for the process's end, and a little longer; call `watch` again and again meanwhile."""
        clock = RealClock()
        limit = Deadline(_PATIENCE_S, clock)
        while not _reached(reached, self._root) and self._process.poll() is None and not limit.passed():
            watch()
            clock.sleep(0.002)
        wait = Deadline(wait_s, clock)
        while not wait.passed():
            watch()
            clock.sleep(0.002)

    def signal(self, number: signal.Signals) -> None:
        """Send the host a signal."""
        self._process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait for the host to end; return its exit code and what it said on stderr."""
        _, said = self._process.communicate(timeout=_PATIENCE_S)
        return self._process.returncode, said.decode(errors="replace")


def _reached(reached: Reached, root: Path) -> bool:
    try:
        return reached(root)
    except OSError:  # it was moved away while it was looked at
        return False


def runners_over(root: Path) -> Iterator[psutil.Process]:
    """Yield the runner processes that serve a session below a folder."""
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if "profiler.runner" in words and any(word.startswith(str(root)) for word in words):
            yield process


def check_whole(store: Store, run_id: str) -> None:
    """Check that a run holds exactly what its journals say, and every image that it names."""
    run, folder = store.load(run_id), store.folder(run_id)
    journals = [folder / process.journal for process in run.processes]
    events = [event for path in journals if path.is_file() for event in read_journal(path)]
    done = [event.duration_ns for event in events if isinstance(event, IterationDone)]
    assert [sample.duration_ns for sample in run.iterations] == done
    assert all((folder / image.path).is_file() for image in run.images)


def left_over(root: Path) -> list[Path]:
    """List every file that belongs to no finished run."""
    files = (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in files if path.parts[len(root.parts)] != "runs" or path.suffix == ".tmp")
