"""Measure the runs that tests/golden keeps, with whatever version of the product is on the path.

`python -m scripts.write_golden FOLDER` makes a new FOLDER (tests/golden/README.md). Uses the command line alone, so
that the version of any checkout can write the files of its format: `PYTHONPATH=CHECKOUT python
scripts/write_golden.py FOLDER`.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_MAIN = [sys.executable, "-c", "import sys; from profiler.cli import main; sys.exit(main())"]
_FEW = ["--cold-starts", "2", "--warmups", "1", "--repeats", "4", "--observer-pairs", "1", "--threads", "1"]
_BUNDLE = (
    "from pathlib import Path; from tests.small_bundle import build_small_bundle; build_small_bundle(Path({}), {})"
)


def main() -> int:
    """Write one folder of golden files."""
    target = Path(sys.argv[1])
    if target.exists():
        sys.exit(f"{target} is there already: golden files are added, never changed")
    with tempfile.TemporaryDirectory() as work:
        _measure(Path(work), target)
    return 0


def _measure(work: Path, target: Path) -> None:
    store = work / "store"
    _profile(store, "--model", "nano")
    _profile(store, "--model", "nano", "--task", "edit")
    _build(work / "failing", 'fault="failing_call"')
    _profile(store, "--model", str(work / "failing"), code=1)
    _build(work / "slow", "slow=10")
    session = _kill_half_way(store, work / "slow")
    shutil.copytree(
        session, work / "session", ignore=shutil.ignore_patterns("*.lock", "*.safetensors", "*.log", "token", "bundle")
    )
    subprocess.run([*_MAIN, "runs", "--store", str(store)], check=True)
    _keep(work, target)


def _build(folder: Path, how: str) -> None:
    subprocess.run([sys.executable, "-c", _BUNDLE.format(repr(str(folder)), how)], check=True)


def _profile(store: Path, *arguments: str, code: int = 0) -> None:
    ended = subprocess.run([*_MAIN, "--store", str(store), *_FEW, *arguments], check=False)
    if ended.returncode != code:
        sys.exit(f"profile {' '.join(arguments)} ended with {ended.returncode} instead of {code}")


def _kill_half_way(store: Path, bundle: Path) -> Path:
    """Kill the host while its second process makes images, and return the session it leaves open."""
    command = [*_MAIN, "--store", str(store), *_FEW[:5], "200", *_FEW[6:], "--model", str(bundle)]
    victim = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while victim.poll() is None:
        if any(path.read_bytes().count(b"\n") > 30 for path in store.glob("sessions/*/device/*/*.jsonl")):
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            time.sleep(15)  # until its runner has noticed, too
            return next(store.glob("sessions/*"))
        time.sleep(0.005)
    sys.exit("the host ended before it could be killed")


def _keep(work: Path, target: Path) -> None:
    shutil.copytree(work / "store" / "runs", target / "store" / "runs")
    shutil.copytree(work / "session", target / "session")
    shutil.copytree(work / "failing", target / "bundle", ignore=shutil.ignore_patterns("*.onnx", "*.safetensors"))
    for path in target.rglob("*.json*"):
        path.write_bytes(path.read_bytes().replace(str(work).encode(), b"/home/someone"))


if __name__ == "__main__":
    sys.exit(main())
