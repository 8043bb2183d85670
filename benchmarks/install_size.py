"""Measure what the base install takes: `python -m benchmarks.install_size`.

A wheel and its dependencies go into a fresh virtual environment without pip in it. The time depends on pip's cache and
the network; it is printed, not judged.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.verdicts import Load, Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler import codec
from profiler.quantities import MIB
from profiler.records.record import Record

PROJECT = Path(__file__).parent.parent
_LARGEST = 8


class Distribution(Record):
    """An installed package and the size of its files."""

    name: str
    version: str
    mebibytes: float


class Report(Record):
    """The whole result, as `--json` prints it; `mebibytes` is site-packages, bytecode included."""

    benchmark: str = "install_size"
    load_average: Load
    python: str
    seconds: float
    mebibytes: float
    distributions: tuple[Distribution, ...]
    verdicts: tuple[Verdict, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Install, measure, print; return 0 where PyTorch stayed out."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.install_size", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        report = measure(Path(folder))
    print(codec.encode(report).decode()) if options.json else _print(report, Console())
    return exit_code(report.verdicts)


def measure(folder: Path) -> Report:
    """Install into a virtual environment in `folder` and measure its site-packages."""
    before = load_now()
    venv.create(folder, with_pip=False, symlinks=True)
    start = time.monotonic()
    _install(folder / "bin" / "python")
    seconds = time.monotonic() - start
    packages = next((folder / "lib").glob("python*/site-packages"))
    distributions = _distributions(packages)
    torches = sum(distribution.name == "torch" for distribution in distributions)
    return Report(
        load_average=load_since(before),
        python=sys.version.split()[0],
        seconds=seconds,
        mebibytes=_size(packages.rglob("*")),
        distributions=distributions,
        verdicts=(judge("PyTorch in the base install", "distributions", torches, 0),),
    )


def _install(python: Path) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", str(PROJECT)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"pip failed with {done.returncode}:\n{done.stderr}")


def _distributions(packages: Path) -> tuple[Distribution, ...]:
    """List what is installed, the largest first."""
    found = [
        Distribution(
            name=distribution.metadata["Name"],
            version=distribution.version,
            mebibytes=_size(Path(str(file.locate())) for file in distribution.files or ()),
        )
        for distribution in importlib.metadata.distributions(path=[str(packages)])
    ]
    return tuple(sorted(found, key=lambda distribution: -distribution.mebibytes))


def _size(paths: Iterable[Path]) -> float:
    return sum(path.stat().st_size for path in paths if path.is_file()) / MIB


def _print(report: Report, console: Console) -> None:
    total, count = report.mebibytes, len(report.distributions)
    console.print(f"base install: {report.seconds:.1f} s, {total:.1f} MiB in site-packages, {count} distributions")
    for distribution in report.distributions[:_LARGEST]:
        console.print(f"  {distribution.mebibytes:7.1f} MiB  {distribution.name} {distribution.version}")
    print_verdicts(report.verdicts, report.load_average, console)


if __name__ == "__main__":
    sys.exit(main())
