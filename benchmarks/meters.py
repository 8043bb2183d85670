"""Check the local runner's memory and latency against foreign meters: `python -m benchmarks.meters`.

Memory: the peak that the runner reports against the one that `/usr/bin/time` prints for its process, and the largest
sum of resident mappings (smaps_rollup, every 5 ms), which is a lower bound. Latency: the time from the first image's
begin to the last one's end, and each image's own, against the lines of the journal as a process of its own sees the
file grow. On a busy machine it looks late, which a single image shows and the sum hardly does.
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
    """Begin and end in ns of the same images: the runner's own, and those of whoever watched its journal."""

    own: list[tuple[int, int]]
    watched: list[tuple[int, int]]

    def whole(self) -> tuple[int, int]:
        """Return the time from the first begin to the last end, by either."""
        return self.own[-1][1] - self.own[0][0], self.watched[-1][1] - self.watched[0][0]

    def images(self) -> tuple[list[int], list[int]]:
        """Return each image's time, by either."""
        return [end - begin for begin, end in self.own], [end - begin for begin, end in self.watched]


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
    own, watched = latency.whole()
    table.add_row(
        task, f"journal, all {len(latency.own)} images", format_ns(own), format_ns(watched), f"{watched / own - 1:+.3%}"
    )
    yield judge(f"{task}: all images' time off from the journal's watcher", "", abs(watched / own - 1), _LATENCY_LIMIT)
    each_own, each_watched = map(summarise, latency.images())
    off = summarise([abs(other / mine - 1) for mine, other in zip(*latency.images(), strict=True)])
    table.add_row(
        task,
        "journal, median image",
        format_ns(each_own.median),
        format_ns(each_watched.median),
        f"{each_watched.median / each_own.median - 1:+.3%}; an image {off.median:.3%}",
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
    own = [(sample.start_boot_ns, sample.start_boot_ns + sample.duration_ns) for sample in run.iterations]
    return LatencyReadings(own, watched)


def watched_ns(journal: Path, growth: Growth) -> Iterator[tuple[int, int]]:
    """Yield when the line that begins an image, and the one that ends it, were seen in the file."""
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
            yield begun[(event.phase, event.iteration)], moment


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
