"""A runner under foreign meters: `/usr/bin/time`, the kernel's smaps, and a watcher of its journal.

Started by `benchmarks.meters` in the runner's place; what the meters read goes into `--out`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from profiler import codec
from profiler.bundle_files import sync_file
from profiler.journal import JOURNAL_FILE
from profiler.records.record import Record

METERS = ("latency", "memory")
TIME_PROGRAM = Path("/usr/bin/time")
_SMAPS_INTERVAL_S = 0.005


class Growth(Record):
    """How many bytes a journal had at a moment of CLOCK_BOOTTIME, each time it had grown."""

    boot_ns: list[int]
    size_bytes: list[int]


def main() -> int:
    """Start the runner and one meter, and end with the runner's exit code."""
    options = _parse()
    command = [sys.executable, "-P", "-m", "profiler.runner", "--storage", str(options.storage)]
    if options.meter == "memory":
        return _with_memory_meters(command, options.out)
    return _with_journal_watcher(command, options.storage / JOURNAL_FILE, options.out)


def _with_memory_meters(command: list[str], out: Path) -> int:
    timed = [str(TIME_PROGRAM), "-f", "%M", "-o", str(out / "time"), *command]
    with subprocess.Popen(timed) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, _rss_kib(_child_of(process.pid)))
            time.sleep(_SMAPS_INTERVAL_S)
        (out / "smaps").write_text(str(peak))
        return process.returncode


def _child_of(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def _rss_kib(pid: int | None) -> int:
    """Sum the resident pages of every mapping, which the kernel walks for this file one by one."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text() if pid is not None else ""
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Rss:")), 0)


def _with_journal_watcher(command: list[str], journal: Path, out: Path) -> int:
    with subprocess.Popen(command) as process:
        while not journal.is_file() and process.poll() is None:
            time.sleep(0.001)
        growth = Growth(boot_ns=[], size_bytes=[])
        if journal.is_file():
            _watch(journal, process, growth)
        (out / JOURNAL_FILE).write_bytes(journal.read_bytes() if journal.is_file() else b"")
        (out / "growth.json").write_bytes(codec.encode(growth))
        sync_file(out / "growth.json")
        return process.wait()


def _watch(journal: Path, process: subprocess.Popen[bytes], growth: Growth) -> None:
    """Look at the file's size without a pause: on a core of its own, a look takes about a microsecond."""
    size = looks = 0
    with journal.open("rb") as stream:
        while looks % 1024 or process.poll() is None:
            looks += 1
            now = stream.seek(0, 2)
            if now != size:
                growth.boot_ns.append(time.clock_gettime_ns(time.CLOCK_BOOTTIME))
                growth.size_bytes.append(now)
                size = now


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metered_runner", description=__doc__)
    parser.add_argument("--meter", choices=METERS, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--storage", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
