"""Measure what a command on a phone takes over our kept connection, and else: `python -m benchmarks.adb_roundtrip`.

All go to the same virtual phone through the same real adb server, in turn.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import adbutils
from rich.console import Console
from rich.table import Table

from benchmarks.phone_beside import Beside, phone_beside
from benchmarks.verdicts import Load, Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler import codec
from profiler.devices.android.shell import Shell
from profiler.records.record import Record
from profiler.stats import Summary, summarise

ROUNDS = 10
LIMIT_MS = 1.0
BLOCK = 20
COMMAND = "echo hello"
KEPT = "ours, kept connection"


class Way(Record):
    """One way to run a command; `ratio` is its median against that of the kept connection."""

    name: str
    milliseconds: Summary
    ratio: float


class Report(Record):
    """The whole result, as `--json` prints it."""

    benchmark: str = "adb_roundtrip"
    command: str
    load_average: Load
    ways: tuple[Way, ...]
    verdicts: tuple[Verdict, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0 where the target is met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adb_roundtrip", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"blocks of {BLOCK} commands each way (default: {ROUNDS})"
    )
    options = parser.parse_args(arguments)
    report = measure(options.rounds)
    print(codec.encode(report).decode()) if options.json else _print(report, Console())
    return exit_code(report.verdicts)


def measure(rounds: int) -> Report:
    """Run the command a block at a time each way, in turn."""
    before = load_now()
    with phone_beside() as beside:
        shell = Shell(beside.transport)
        ways = _ways(beside, shell)
        turns = [{name: _block(run) for name, run in ways.items()} for _ in range(rounds)]
        shell.close()
    found = {name: summarise([each for turn in turns for each in turn[name]]) for name in ways}
    kept = found[KEPT].median
    return Report(
        command=COMMAND,
        load_average=load_since(before),
        ways=tuple(Way(name=name, milliseconds=each, ratio=each.median / kept) for name, each in found.items()),
        verdicts=(judge("a command over the kept connection, median", "ms", kept, LIMIT_MS),),
    )


def _ways(beside: Beside, shell: Shell) -> dict[str, Callable[[], object]]:
    device = adbutils.AdbClient(port=beside.adb.port).device(beside.serial)
    return {
        KEPT: lambda: shell.run(COMMAND).text,
        "ours, a connection each": lambda: shell.once(COMMAND).text,
        "adb shell": lambda: beside.adb.run("shell", COMMAND, serial=beside.serial).stdout.decode(),
        "adbutils shell": lambda: f"{device.shell(COMMAND)}\n",
        "adbutils shell2, v2": lambda: device.shell2(COMMAND, v2=True).stdout,
    }


def _block(run: Callable[[], object]) -> list[float]:
    """Return what a block of commands takes, one by one: after the first, what the way before left behind is gone."""
    return [_milliseconds(run) for _ in range(BLOCK + 1)][1:]


def _milliseconds(run: Callable[[], object]) -> float:
    start_ns = time.monotonic_ns()
    said = run()
    taken_ns = time.monotonic_ns() - start_ns
    if said != "hello\n":
        raise RuntimeError(f"the phone said {said!r}")
    return taken_ns / 1e6


def _print(report: Report, console: Console) -> None:
    table = Table("way", "median ms", "half in", "× kept", title=f"{report.command!r} on a virtual phone")
    for way in report.ways:
        spread = f"{way.milliseconds.p25:.2f} – {way.milliseconds.p75:.2f}"
        table.add_row(way.name, f"{way.milliseconds.median:.2f}", spread, f"{way.ratio:.1f}")
    console.print(table)
    print_verdicts(report.verdicts, report.load_average, console)


if __name__ == "__main__":
    sys.exit(main())
