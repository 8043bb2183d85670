"""The host is killed at any moment, and nothing that was measured is lost."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from profiler.cli import main
from profiler.clock import Deadline, RealClock
from profiler.journal import read_journal
from profiler.records.event import IterationDone
from profiler.store import Store
from tests.small_bundle import build_small_bundle

KILLS = 20
SEED = 20_261_130

Reached = Callable[[Path], bool]


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

    def __init__(self, bundle: Path, root: Path) -> None:
        how = ["--cold-starts", "2", "--warmups", "0", "--repeats", "12", "--observer-pairs", "0", "--threads", "1"]
        start = "import sys; from profiler.cli import main; sys.exit(main())"
        self._root = root
        self._process = subprocess.Popen(
            [sys.executable, "-c", start, "--model", str(bundle), "--store", str(root), "--json", *how],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def kill_when(self, reached: Reached, wait_s: float) -> None:
        """Wait for a moment, and a little longer."""
        clock = RealClock()
        limit = Deadline(20, clock)
        while not reached(self._root) and self._process.poll() is None and not limit.passed():
            clock.sleep(0.002)
        clock.sleep(wait_s)
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


@pytest.fixture(scope="module")
def slow_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_small_bundle(tmp_path_factory.mktemp("slow") / "bundle", slow=1)


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def runners_over(root: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if "profiler.runner" in words and any(word.startswith(str(root)) for word in words):
            yield process


def check_store(root: Path, before: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Check every invariant after the next command; return what each run holds now."""
    store = Store(root)
    assert list(runners_over(root)) == []
    assert list((root / "sessions").glob("*")) == [] or not (root / "sessions").exists()
    assert [path for path in root.rglob("*") if path.suffix in (".new", ".closed", ".tmp")] == []
    assert not (root / "set-aside").exists()
    now = {run_id: contents(store.folder(run_id)) for run_id in store.run_ids()}
    assert {run_id: now.get(run_id) for run_id in before} == before
    folders = [path.name for path in root.glob("runs/*/*")]
    assert sorted(folders) == sorted(set(folders)) == store.run_ids()
    for run_id in now.keys() - before.keys():
        check_run(store, run_id)
    return now


def check_run(store: Store, run_id: str) -> None:
    run, folder = store.load(run_id), store.folder(run_id)
    assert run.outcome in ("completed", "interrupted")
    journals = [folder / process.journal for process in run.processes]
    events = [event for path in journals if path.is_file() for event in read_journal(path)]
    done = [event.duration_ns for event in events if isinstance(event, IterationDone)]
    assert [sample.duration_ns for sample in run.iterations] == done
    assert all((folder / image.path).is_file() for image in run.images)


@pytest.mark.slow
def test_nothing_measured_is_lost_when_the_host_is_killed_at_any_moment(
    slow_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root, chance = tmp_path / "store", random.Random(SEED)
    moments = [*MOMENTS, *chance.choices(list(MOMENTS), k=KILLS - len(MOMENTS))]
    chance.shuffle(moments)
    known: dict[str, dict[str, str]] = {}
    for number, moment in enumerate(moments):
        wait_s, pause = chance.uniform(0, 0.3), chance.random() < 0.5
        told = f"kill {number} of seed {SEED}: {moment}, then {wait_s:.3f} s; pause before the next command: {pause}"
        Victim(slow_bundle, root).kill_when(MOMENTS[moment], wait_s)
        if pause:
            RealClock().sleep(0.2)
        capsys.readouterr()
        code = main(["runs", "--json", "--store", str(root)])
        printed = capsys.readouterr()
        try:
            assert code == 0, printed.err
            known = check_store(root, known)
            assert [json.loads(line)["run_id"] for line in printed.out.splitlines()] == sorted(known)
        except AssertionError as error:
            raise AssertionError(f"after {told}") from error
    assert {Store(root).load(run_id).outcome for run_id in known} == {"completed", "interrupted"}
