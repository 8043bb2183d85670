"""`profile` with a faulty runner, in this process or its own, and what must hold whatever went wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from profiler.catalog import device_profile
from profiler.cli import main
from profiler.clock import Clock, Deadline, RealClock
from profiler.devices.device import Device
from profiler.devices.local import LocalDevice, Patience
from profiler.records.job import OnDisconnect
from profiler.records.run import Run
from profiler.store import Store
from tests.cli.conftest import LEAST
from tests.faults.faulty_runner import Fault, program
from tests.victims import left_over, runners_over

PATIENCE = Patience(start_s=20.0, end_s=1.0)


class Told(NamedTuple):
    """What one command ended with and said."""

    code: int
    out: str
    err: str


class Faulty:
    """Opens this machine with a faulty runner, as `main` takes it."""

    def __init__(self, fault: Fault, patience: Patience = PATIENCE, away_s: float = 2.0) -> None:
        self._fault, self._patience, self._away_s = fault, patience, away_s

    def __call__(self, name: str, clock: Clock) -> Device:
        device = LocalDevice(device_profile(name), clock, program=program(self._fault), patience=self._patience)
        device.on_disconnect = OnDisconnect(kind="stop_after_s", seconds=self._away_s)
        return device


class Desk:
    """Where one test measures: a bundle, a store, and what is said about it."""

    def __init__(self, bundle: Path, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.bundle, self.store, self._capsys = bundle, Store(root), capsys

    def measure(self, fault: Fault, *options: str, patience: Patience = PATIENCE, away_s: float = 2.0) -> Told:
        """Measure in this process."""
        arguments = ["--model", str(self.bundle), "--store", str(self.store.root), *LEAST, *options]
        return self._tell(main(arguments, open_device=Faulty(fault, patience, away_s)))

    def command(self, *arguments: str) -> Told:
        """Run another command on the same store."""
        return self._tell(main([*arguments, "--store", str(self.store.root)]))

    def _tell(self, code: int) -> Told:
        printed = self._capsys.readouterr()
        assert "Traceback" not in printed.err, printed.err
        return Told(code, printed.out, printed.err)

    def only_run(self) -> Run:
        """Return the one run that there is, after checking that nothing else is left."""
        check_nothing_left(self.store.root)
        (run_id,) = self.store.run_ids()
        return self.store.load(run_id)

    def check_shown(self, run: Run) -> None:
        """Check that lists and reports tell of a run that failed, with its reason, and show no number for it."""
        listed = self.command("runs")
        assert listed.code == 0
        (line,) = [line for line in listed.out.splitlines() if run.run_id in line]
        assert run.outcome in line
        shown = self.command("show", "last")
        assert shown.code == 0
        told = " ".join(shown.out.split())
        assert run.outcome in told
        assert " ".join((run.reason or "").split())[:60] in told
        summary = json.loads(self.command("show", "last", "--json").out)
        assert summary["latency_ns"] is None or summary["latency_ns"]["n"] > 0
        assert (summary["outcome"], summary["reason"], summary["stage"]) == (run.outcome, run.reason, run.stage)


def check_nothing_left(root: Path) -> None:
    """Check that there is neither a runner nor an open session nor a half-written file."""
    limit = Deadline(10, RealClock())
    while list(runners_over(root)) and not limit.passed():  # one whose host was killed takes a moment to notice
        RealClock().sleep(0.02)
    assert list(runners_over(root)) == []
    sessions = root / "sessions"
    assert not sessions.exists() or list(sessions.iterdir()) == []
    assert left_over(root) == []


def start_profile(
    arguments: Sequence[str], fault: Fault | None = None, *, environment: dict[str, str] | None = None, **settings: Any
) -> subprocess.Popen[bytes]:
    """Start `profile` as a process of its own, with a faulty runner or the product's."""
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-P", "-m", "tests.faults.hosts", json.dumps(fault), *arguments]
    settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path, **(environment or {})}, **settings)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    patience = Patience(end_s=float(os.environ.get("TEST_END_S", "1")))
    sys.exit(main(sys.argv[2:], open_device=None if given is None else Faulty(Fault(*given), patience)))
