"""Check the local runner's memory and latency against foreign meters: `python -m benchmarks.meters`.

Memory: the peak that the runner reports against the one that `/usr/bin/time` prints for its process, and the largest
sum of resident mappings (smaps_rollup, every 5 ms), which is a lower bound. Latency: each image's time against the time
between its first and its last line in the journal, as a process of its own sees the file grow.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.metered_runner import TIME_PROGRAM, Growth
from benchmarks.verdicts import Verdict, exit_code, judge, load_now, load_since, print_verdicts
from profiler import codec
from profiler.bundle_files import load_manifest, manifest_sha256
from profiler.catalog import device_profile
from profiler.clock import RealClock
from profiler.devices.local import LocalDevice
from profiler.inputs import Wishes, job_inputs, plan_for
from profiler.journal import JOURNAL_FILE, read_journal
from profiler.quantities import KIB, format_bytes, format_ns
from profiler.records.event import Begin, IterationDone
from profiler.records.job import Measurement
from profiler.records.record import Task
from profiler.records.run import Run
from profiler.session import Order, measure
from profiler.stats import summarise
from profiler.store import Store

NANO = Path(__file__).parent.parent / "exporters" / "bundles" / "nano"
_MEMORY_LIMIT, _LATENCY_LIMIT = 0.01, 0.005


class MemoryReadings(NamedTuple):
    """Peaks in bytes: the runner's own, `/usr/bin/time`'s, and the largest sum of mappings seen."""

    own: int
    time: int
    smaps: int


class LatencyReadings(NamedTuple):
    """Times in ns of the same images: the runner's own, and those of whoever watched its journal."""

    own: list[int]
    watched: list[int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every task of a bundle under both meters; return 0 where they agree."""
    options = _parse(arguments)
    if not TIME_PROGRAM.is_file():
        print(f"meters: there is no {TIME_PROGRAM}; on Debian: apt-get install time", file=sys.stderr)
        return 2
    before = load_now()
    verdicts = []
    table = Table("task", "meter", "the runner says", "others say", "difference", box=None)
    for task in load_manifest(options.bundle).tasks:
        verdicts += list(_check(options.bundle, task, options.images, table))
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    print_verdicts(verdicts, load_since(before), Console())
    return exit_code(verdicts)


def _check(bundle: Path, task: Task, images: int, table: Table) -> Iterator[Verdict]:
    memory = read_memory(bundle, task)
    for meter, other in (("/usr/bin/time", memory.time), ("smaps, a lower bound", memory.smaps)):
        table.add_row(task, meter, format_bytes(memory.own), format_bytes(other), f"{other / memory.own - 1:+.2%}")
    yield judge(f"{task}: peak memory off from /usr/bin/time", "", abs(memory.time / memory.own - 1), _MEMORY_LIMIT)
    latency = read_latency(bundle, task, images)
    own, watched = summarise(latency.own), summarise(latency.watched)
    off = summarise([abs(other / mine - 1) for mine, other in zip(latency.own, latency.watched, strict=True)])
    shown = f"{watched.median / own.median - 1:+.3%}; each image {off.median:.3%}, p90 {off.p90 or off.median:.3%}"
    table.add_row(task, f"journal, n = {own.n}", format_ns(own.median), format_ns(watched.median), shown)
    yield judge(
        f"{task}: median latency off from the journal's watcher",
        "",
        abs(watched.median / own.median - 1),
        _LATENCY_LIMIT,
    )


def read_memory(bundle: Path, task: Task) -> MemoryReadings:
    """Run a few images under the memory meters."""
    with tempfile.TemporaryDirectory() as folder:
        run = _run(bundle, task, 3, "memory", Path(folder))
        memory = run.processes[0].memory
        own = memory.peak_bytes if memory and memory.peak_bytes else 0
        time, smaps = (int((Path(folder) / name).read_text()) * KIB for name in ("time", "smaps"))
        return MemoryReadings(own, time, smaps)


def read_latency(bundle: Path, task: Task, images: int) -> LatencyReadings:
    """Run images while another process watches the journal."""
    with tempfile.TemporaryDirectory() as folder:
        run = _run(bundle, task, images, "latency", Path(folder))
        growth = codec.read(Path(folder) / "growth.json", Growth)
        watched = list(watched_ns(Path(folder) / JOURNAL_FILE, growth))
    return LatencyReadings([sample.duration_ns for sample in run.iterations], watched)


def watched_ns(journal: Path, growth: Growth) -> Iterator[int]:
    """Yield the time from the line that begins an image to the one that ends it, as the file was seen to grow."""
    seen = iter(zip(growth.boot_ns, growth.size_bytes, strict=True))
    moment, size, end = 0, 0, 0
    begun: dict[tuple[str, int | None], int] = {}
    for event, line in zip(read_journal(journal), journal.read_bytes().splitlines(keepends=True), strict=True):
        end += len(line)
        while size < end:
            moment, size = next(seen)
        if isinstance(event, Begin):
            begun.setdefault((event.phase, event.iteration), moment)
        elif isinstance(event, IterationDone):
            yield moment - begun[(event.phase, event.iteration)]


def _run(bundle: Path, task: Task, images: int, meter: str, out: Path) -> Run:
    clock = RealClock()
    program = (sys.executable, "-m", "benchmarks.metered_runner", "--meter", meter, "--out", str(out))
    device = LocalDevice(device_profile("local"), clock, program=program)
    manifest = load_manifest(bundle)
    plan = plan_for(bundle, manifest, task, None)
    order = Order(
        bundle_folder=bundle,
        bundle=manifest,
        bundle_sha256=manifest_sha256(bundle),
        plan=plan,
        inputs=job_inputs(bundle, manifest, plan, Wishes()),
        measurement=Measurement(kind="burst"),
        cold_starts=1,
        warmups=1,
        repeats=images,
        observer_pairs=0,
        threads=1,  # the watcher has the other core
    )
    return measure(order, device, Store(out / "store"), clock, lambda progress: None)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.meters", description=__doc__)
    parser.add_argument("--bundle", type=Path, default=NANO, help="folder of the bundle")
    parser.add_argument("--images", type=int, default=100, help="timed images of each task")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
