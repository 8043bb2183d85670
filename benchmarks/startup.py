"""Measure what `profile --help` takes: `python -m benchmarks.startup`."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.verdicts import Load, Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler import codec
from profiler.quantities import KIB, MIB
from profiler.records.record import Record
from profiler.stats import Summary, summarise

RUNS = 10
SECONDS_LIMIT, MEBIBYTES_LIMIT = 0.3, 60.0
_HELP = [str(Path(sys.executable).with_name("profile")), "--help"]
# Linux hands the parent's own peak down to a child's ru_maxrss, so a process that has loaded next to nothing starts it.
_LAUNCHER = """
import os, sys, time
null = os.open(os.devnull, os.O_WRONLY)
start_ns = time.monotonic_ns()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
_, status, usage = os.wait4(child, 0)
print([time.monotonic_ns() - start_ns, usage.ru_maxrss, os.waitstatus_to_exitcode(status)])
"""
_COUNT = "import sys; from profiler.cli import main; main(['--help']); print(len(sys.modules), file=sys.stderr)"


class Report(Record):
    """The whole result, as `--json` prints it."""

    benchmark: str = "startup"
    command: str
    load_average: Load
    seconds: Summary
    peak_mebibytes: Summary
    modules: int
    verdicts: tuple[Verdict, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0 where both targets are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    report = measure()
    print(codec.encode(report).decode()) if options.json else _print(report, Console())
    return exit_code(report.verdicts)


def measure() -> Report:
    """Start `profile --help` as a fresh process, once to fill the caches and then to be counted."""
    before = load_now()
    with tempfile.TemporaryDirectory() as cache:
        environment = _as_installed(cache)
        _launch(environment)
        runs = [_launch(environment) for _ in range(RUNS)]
        modules = _modules(environment)
    seconds, mebibytes = (summarise(samples) for samples in zip(*runs, strict=True))
    return Report(
        command="profile --help",
        load_average=load_since(before),
        seconds=seconds,
        peak_mebibytes=mebibytes,
        modules=modules,
        verdicts=(
            judge("profile --help, median time", "s", seconds.median, SECONDS_LIMIT),
            judge("profile --help, median peak memory", "MiB", mebibytes.median, MEBIBYTES_LIMIT),
        ),
    )


def _as_installed(cache: str) -> dict[str, str]:
    """Return an environment in which bytecode is kept, as pip leaves it, wherever this one keeps it."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": cache}


def _launch(environment: Mapping[str, str]) -> tuple[float, float]:
    """Return wall seconds and peak resident MiB of one fresh process."""
    command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *_HELP]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    wall_ns, peak, code = json.loads(done.stdout)
    if code != 0:
        raise SystemExit(f"{' '.join(_HELP)} ended with {code}: {done.stderr}")
    return wall_ns / 1e9, peak * (1 if sys.platform == "darwin" else KIB) / MIB


def _modules(environment: Mapping[str, str]) -> int:
    done = subprocess.run([sys.executable, "-c", _COUNT], env=environment, check=True, capture_output=True, text=True)
    return int(done.stderr.split()[-1])


def _print(report: Report, console: Console) -> None:
    for name, unit, summary in (("time", "s", report.seconds), ("peak memory", "MiB", report.peak_mebibytes)):
        spread = f"{summary.p25:.3f} – {summary.p75:.3f}"
        console.print(
            f"{report.command}, {name}: median {summary.median:.3f} {unit}, half in {spread}, n = {summary.n}"
        )
    console.print(f"{report.command}, modules loaded: {report.modules}")
    print_verdicts(report.verdicts, report.load_average, console)


if __name__ == "__main__":
    sys.exit(main())
