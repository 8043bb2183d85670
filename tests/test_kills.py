"""The host is killed at any moment, and nothing that was measured is lost."""

from __future__ import annotations

import hashlib
import json
import random
import signal
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.clock import RealClock
from profiler.store import Store
from tests.small_bundle import build_small_bundle
from tests.victims import MOMENTS, Victim, check_whole, runners_over

KILLS = 20
SEED = 20_261_130


@pytest.fixture(scope="module")
def slow_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_small_bundle(tmp_path_factory.mktemp("slow") / "bundle", slow=1)


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


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
    assert store.load(run_id).outcome in ("completed", "interrupted")
    check_whole(store, run_id)


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
        victim = Victim(slow_bundle, root)
        victim.wait_until(MOMENTS[moment], wait_s)
        victim.signal(signal.SIGKILL)
        victim.end()
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
