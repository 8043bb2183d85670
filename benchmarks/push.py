"""Measure how fast files go to a phone beside `adb push`, and what an unchanged bundle costs.

`python -m benchmarks.push`: both push to the same virtual phone through the same real adb server, in turn. Our time is
that of the call, in a process that has started; adb's is that of its process. Each file is removed in between, outside
the time.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.phone_beside import Beside, phone_beside
from benchmarks.verdicts import Load, Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler import codec
from profiler.bundle_files import MANIFEST, describe
from profiler.devices.android.content import Content
from profiler.devices.android.files import Files, Outgoing
from profiler.devices.android.shell import Shell, quoted
from profiler.quantities import GIB, KIB, MIB
from profiler.records.bundle import Bundle
from profiler.records.record import Record
from tests.records_for_tests import make_bundle

TURNS = 8
LEAST_RATIO = 0.9
AGAIN_LIMIT_S, MEMORY_LIMIT_MIB = 1.0, 64.0
_TO = "/data/local/tmp/bench"
_SMALL_FILES = 200


class Case(NamedTuple):
    """What is pushed: files of a folder, so many bytes each."""

    name: str
    sizes: tuple[int, ...]
    turns: int
    sparse: bool = False


class Race(Record):
    """Medians of seconds, both sides, and the raw times in order; `ratio` is our speed against that of adb.

    It is the median over pairs: what else the machine does slows both of a pair. `…_cpu_s` is what the pushing process
    itself worked, the server's and the phone's part left out.
    """

    case: str
    total_bytes: int
    ours_s: float
    adb_s: float
    ours_cpu_s: float
    adb_cpu_s: float
    ratio: float
    pairs: tuple[tuple[float, float], ...]


class Report(Record):
    """The whole result, as `--json` prints it; memory is the peak of a process that does nothing else."""

    benchmark: str = "push"
    load_average: Load
    races: tuple[Race, ...]
    bundle_s: float
    unchanged_bundle_s: float
    peak_mebibytes_of_four_gibibytes: float
    verdicts: tuple[Verdict, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0 where all targets are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.push", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"pushes each way (default: {TURNS})")
    options = parser.parse_args(arguments)
    report = measure(options.turns)
    print(codec.encode(report).decode()) if options.json else _print(report, Console())
    return exit_code(report.verdicts)


def measure(turns: int) -> Report:
    """Race on each case, push a bundle twice, and weigh the process that sends the largest file."""
    before = load_now()
    cases = (
        Case("256 MiB", (256 * MIB,), turns),
        Case("4 GiB, sparse", (4 * GIB,), max(1, turns // 4), sparse=True),
        Case(f"{_SMALL_FILES} × 4 KiB", (4 * KIB,) * _SMALL_FILES, turns),
    )
    with phone_beside() as beside, tempfile.TemporaryDirectory() as folder:
        sides = _Sides(beside)
        races = tuple(_race(sides, case, _made(Path(folder) / str(n), case)) for n, case in enumerate(cases))
        first_s, again_s = _bundle_s(sides, Path(folder) / "bundle")
        peak = _peak_mebibytes(beside, Path(folder) / "1" / "0")
        sides.shell.close()
    large = [race for race in races if race.total_bytes >= 256 * MIB]
    return Report(
        load_average=load_since(before),
        races=races,
        bundle_s=first_s,
        unchanged_bundle_s=again_s,
        peak_mebibytes_of_four_gibibytes=peak,
        verdicts=(
            *(judge(f"{race.case}: time against adb push", "×", 1 / race.ratio, 1 / LEAST_RATIO) for race in large),
            judge("an unchanged bundle of 512 MiB, second push", "s", again_s, AGAIN_LIMIT_S),
            judge("peak memory of the process that sends 4 GiB", "MiB", peak, MEMORY_LIMIT_MIB),
        ),
    )


class _Sides:
    """Both ways to push a folder's files."""

    def __init__(self, beside: Beside) -> None:
        self.beside = beside
        self.shell = Shell(beside.transport)
        self.files = Files(beside.transport, self.shell)

    def ours(self, folder: Path) -> None:
        found = sorted(folder.iterdir())
        self.files.push_staged(Outgoing(file, f"{_TO}/{folder.name}/{file.name}") for file in found)

    def adb(self, folder: Path) -> None:
        done = self.beside.adb.run("push", str(folder), _TO, serial=self.beside.serial)
        if done.returncode:
            raise RuntimeError(done.stderr.decode())

    def clear(self) -> None:
        self.shell.check(f"rm -rf {quoted(_TO)}; mkdir {quoted(_TO)}", 120)


def _made(folder: Path, case: Case) -> Path:
    folder.mkdir()
    for number, size in enumerate(case.sizes):
        with (folder / str(number)).open("wb") as stream:
            if case.sparse:
                stream.truncate(size)
            for start in () if case.sparse else range(0, size, MIB):
                stream.write(os.urandom(min(MIB, size - start)))
    return folder


def _race(sides: _Sides, case: Case, folder: Path) -> Race:
    ways: list[Callable[[Path], None]] = [sides.ours, sides.adb]
    pairs = []
    for turn in range(case.turns + 1):
        order = ways if turn % 2 else ways[::-1]  # who goes first has the colder caches
        taken = {way: _taken(sides, way, folder) for way in order}
        pairs.append((taken[sides.ours], taken[sides.adb]))
    ours, adb = zip(*pairs[1:], strict=True)
    return Race(
        case=case.name,
        total_bytes=sum(case.sizes),
        ours_s=statistics.median(each.wall_s for each in ours),
        adb_s=statistics.median(each.wall_s for each in adb),
        ours_cpu_s=statistics.median(each.cpu_s for each in ours),
        adb_cpu_s=statistics.median(each.cpu_s for each in adb),
        ratio=statistics.median(theirs.wall_s / own.wall_s for own, theirs in pairs[1:]),
        pairs=tuple((own.wall_s, theirs.wall_s) for own, theirs in pairs[1:]),
    )


class _Taken(NamedTuple):
    wall_s: float
    cpu_s: float


def _taken(sides: _Sides, push: Callable[[Path], None], folder: Path) -> _Taken:
    sides.clear()
    start_ns, start_cpu_s = time.monotonic_ns(), _cpu_s()
    push(folder)
    return _Taken((time.monotonic_ns() - start_ns) / 1e9, _cpu_s() - start_cpu_s)


def _cpu_s() -> float:
    """Return what this process and those that it waited for have worked: while one side pushes, the other rests."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _bundle_s(sides: _Sides, folder: Path) -> tuple[float, float]:
    """Return what a bundle takes the first time, hashed on the phone, and what it takes again."""
    sides.clear()
    bundle = _bundle(folder)
    content = Content(sides.shell, sides.files, folder=f"{_TO}/bundles")
    moments = [time.monotonic_ns()]
    for _ in range(2):
        placed = content.put(folder, bundle)
        moments.append(time.monotonic_ns())
    if placed.sent:
        raise RuntimeError(f"{placed.sent} were sent again")
    return (moments[1] - moments[0]) / 1e9, (moments[2] - moments[1]) / 1e9


def _bundle(folder: Path) -> Bundle:
    _made(folder, Case("bundle", (256 * MIB, 256 * MIB, *(4 * KIB,) * 20), 1))
    names = sorted(file.name for file in folder.iterdir())
    bundle = make_bundle(files=tuple(describe(folder, name) for name in names))
    (folder / MANIFEST).write_bytes(codec.encode(bundle))
    return bundle


def _peak_mebibytes(beside: Beside, file: Path) -> float:
    """Send a file from a fresh process, and return the most memory that it ever held, all of Python included."""
    program = [sys.executable, "-c", _SENDER, str(beside.adb.port), beside.serial, str(file), f"{_TO}/weighed"]
    done = subprocess.run(program, env=dict(os.environ), capture_output=True, text=True, check=True)
    return int(done.stdout) / KIB


_SENDER = """
import re, sys
from pathlib import Path
from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.files import Files
from profiler.devices.android.server_address import Address
from profiler.devices.android.shell import Shell
transport = Transport(Server(Address(port=int(sys.argv[1]))), sys.argv[2])
shell = Shell(transport)
Files(transport, shell).push(Path(sys.argv[3]), sys.argv[4])
shell.close()
print(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])
"""


def _print(report: Report, console: Console) -> None:
    table = Table(
        "pushed", "ours", "adb push", "our speed, × adb", "CPU s, ours and adb", title="to a virtual phone, medians"
    )
    for race in report.races:
        rates = [
            f"{seconds:.2f} s ({race.total_bytes / seconds / MIB:.0f} MiB/s)" for seconds in (race.ours_s, race.adb_s)
        ]
        table.add_row(race.case, *rates, f"{race.ratio:.2f}", f"{race.ours_cpu_s:.2f}, {race.adb_cpu_s:.2f}")
    console.print(table)
    console.print(f"a bundle of 512 MiB, sent and hashed on the phone: {report.bundle_s:.2f} s")
    print_verdicts(report.verdicts, report.load_average, console)


if __name__ == "__main__":
    sys.exit(main())
