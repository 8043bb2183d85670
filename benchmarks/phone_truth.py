"""What is measured on a virtual phone against what really happened in it.

    python -m benchmarks.phone_truth [--personas pixel9 …] [--minutes 8] [--json]

Two sessions a phone, through real adb: a sustained one on the cable, which throttles, for latency, memory, temperature
and the onset of throttling; and one on its battery, for energy. The phone's truth is read from its model, which the
product sees only through gauges that are quantised, late, and of the vendor's unit and sign.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace
from rich.console import Console
from rich.table import Table

from profiler import codec
from profiler.bundle_files import MANIFEST, describe, load_manifest, manifest_sha256
from profiler.quantities import NS_PER_S
from profiler.records.event import EnvironmentSample
from profiler.records.job import Measurement, Sampling
from profiler.records.run import IterationSample, Run
from profiler.session import Order
from tests.devices.android.phones_for_tests import Desk
from tests.phones.adb_server import adb_server
from tests.phones.android.phone import VirtualAndroid
from tests.small_bundle import build_small_bundle, make_order

PERSONAS = ("pixel9", "galaxy-s24", "xiaomi-14", "old-api29", "low-ram-4gb", "unknown-soc")
LIMITS = {"latency": 0.005, "memory": 0.01, "temperature": 0.5, "energy": 0.03, "onset": 2.0}
# As large as bk-sdm-tiny in fp16, in parameters; the files hold a tenth of that, since they are really pushed.
_PARAMETERS = {"text_encoder": 123_000_000, "denoiser": 323_000_000, "decoder": 49_000_000}
_FILE_BYTES = {"text_encoder": 24 << 20, "denoiser": 64 << 20, "decoder": 10 << 20}


class Compared(NamedTuple):
    """One quantity of one phone: what was measured, the truth, and their distance, relative or in its unit."""

    persona: str
    what: str
    measured: float | None
    truth: float | None
    error: float | None
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Tell whether the distance is within its limit; None where there is nothing to compare."""
        limit = LIMITS[self.what.partition(",")[0]]
        return None if self.error is None else self.error <= limit


def main() -> int:
    """Measure, compare and print; exit 1 where a limit is missed."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder, adb_server(Path(folder)) as adb:
        bundle = _heavy(build_small_bundle(Path(folder, "bundle")))
        desk = Desk(adb, Path(folder))
        rows = [row for persona in arguments.personas for row in _compare(persona, bundle, desk, arguments.minutes)]
    _print(rows, as_json=arguments.json)
    return int(any(row.is_met is False for row in rows))


def _compare(persona: str, bundle: Path, desk: Desk, minutes: float) -> Iterator[Compared]:
    order = make_order(bundle, warmups=1, sampling=Sampling(memory_interval_ms=20, environment_interval_ms=1000))
    with VirtualAndroid(persona, runner="kotlin") as phone:
        hot = desk.measure(phone, order._replace(measurement=Measurement(kind="sustained", minutes=minutes)))
        yield from _of_a_hot_run(persona, phone, hot, desk)
    with VirtualAndroid(persona, runner="kotlin") as phone:
        yield from _of_the_battery(persona, phone, _on_battery(phone, order, desk, minutes))


def _of_a_hot_run(persona: str, phone: VirtualAndroid, run: Run, desk: Desk) -> Iterator[Compared]:
    if run.outcome != "completed":
        raise SystemExit(f"{persona}: {run.outcome}: {run.reason}")
    images = [sample for sample in run.iterations if sample.phase == "timed"]
    yield _latency(persona, phone, images)
    yield _memory(persona, phone, run)
    trace = desk.store.load_traces(run)[-1]
    yield from _temperatures(persona, phone, trace.environment)
    yield _onset(persona, phone, trace.environment, images)


def _latency(persona: str, phone: VirtualAndroid, images: Sequence[IterationSample]) -> Compared:
    truth = [_true_ns(phone, image) for image in images]
    errors = [abs(image.duration_ns / true - 1) for image, true in zip(images, truth, strict=True)]
    measured, true = (statistics.median(ns) / NS_PER_S for ns in ([i.duration_ns for i in images], truth))
    return Compared(persona, "latency", measured, true, max(errors), f"s, worst of {len(images)} images")


def _true_ns(phone: VirtualAndroid, image: IterationSample) -> int:
    """Return how long the calls of one image really took, from its first one's start to its last one's end."""
    end_ns = image.start_boot_ns + image.duration_ns
    calls = [d for d in phone.model.truth.done if d.kind == "call" and image.start_boot_ns <= d.start_ns < end_ns]
    return calls[-1].start_ns + calls[-1].duration_ns - calls[0].start_ns


def _memory(persona: str, phone: VirtualAndroid, run: Run) -> Compared:
    peak = run.processes[-1].memory.peak_bytes if run.processes[-1].memory else None
    true = max(peak.resident_and_swapped_bytes for peak in phone.model.truth.peaks.values())
    error = None if peak is None else abs(peak / true - 1)
    return Compared(persona, "memory", _mib(peak), _mib(true), error, "MiB, resident and swapped")


def _temperatures(persona: str, phone: VirtualAndroid, samples: Sequence[EnvironmentSample]) -> Iterator[Compared]:
    truth = phone.model.truth
    told = [(s.device_boot_ns, s.battery_temperature_millicelsius) for s in samples]
    errors = [abs(t / 1000 - truth.temperatures_at(ns).battery) for ns, t in told if t is not None]
    last = next((t / 1000 for _, t in reversed(told) if t is not None), None)
    true = truth.temperatures_at(told[-1][0]).battery
    yield Compared(
        persona, "temperature", last, true, max(errors, default=None), f"°C, worst of {len(errors)} readings"
    )


def _onset(
    persona: str, phone: VirtualAndroid, samples: Sequence[EnvironmentSample], images: Sequence[IterationSample]
) -> Compared:
    """Compare when the clock was first lowered: by the clock limit where it can be read."""
    start_ns = images[0].start_boot_ns
    onsets = [ns for ns in phone.model.truth.throttle_onsets_ns() if ns >= start_ns]
    true = (onsets[0] - start_ns) / NS_PER_S if onsets else None
    limits = [(s.device_boot_ns, s.cpu_frequency_limit_khz) for s in samples if s.cpu_frequency_limit_khz]
    top = max((khz for _, khz in limits), default=0)
    lowered = next((ns for ns, khz in limits if khz < top and ns >= start_ns), None)
    measured = None if lowered is None else (lowered - start_ns) / NS_PER_S
    error = None if measured is None or true is None else abs(measured - true)
    return Compared(
        persona, "onset", measured, true, error, "s into the timed images" if limits else "no clocks to read"
    )


def _on_battery(phone: VirtualAndroid, order: Order, desk: Desk, minutes: float) -> Run:
    """Measure on the battery: the cable goes while the runner waits for that, and comes back when the app has left."""
    done = threading.Event()

    def cable() -> None:
        while not phone.apps.running() and not done.is_set():
            time.sleep(0.05)
        phone.model.at(20.0, phone.unplug)
        while phone.apps.running() and not done.is_set():
            time.sleep(0.05)
        phone.plug()

    hand = threading.Thread(target=cable)
    hand.start()
    try:
        measurement = Measurement(kind="sustained", minutes=minutes)
        return desk.measure(phone, order._replace(measurement=measurement, untethered=True, rest_s=60.0))
    finally:
        done.set()
        hand.join()


def _of_the_battery(persona: str, phone: VirtualAndroid, run: Run) -> Iterator[Compared]:
    images = [sample for sample in run.iterations if sample.phase == "timed"]
    start_ns, end_ns = images[0].start_boot_ns, images[-1].start_boot_ns + images[-1].duration_ns
    true = phone.model.truth.energy_between(start_ns, end_ns).total / len(images)
    if not run.energy:
        yield Compared(persona, "energy", None, true, None, run.energy_reason or "")
    for meter in run.energy:
        measured = meter.joules / meter.images
        # Rails meter parts of a phone; they are no measure of the whole.
        error = None if meter.source == "power_rails" else abs(measured / true - 1)
        yield Compared(persona, f"energy, {meter.source}", measured, true, error, f"J an image; {meter.evidence}")


def _heavy(folder: Path) -> Path:
    """Make a small bundle weigh and cost as much as a real model's: the phone's costs follow its parameters."""
    bundle = load_manifest(folder)
    components = {}
    files = {entry.path: entry for entry in bundle.files}
    for name, component in bundle.components.items():
        if name in _PARAMETERS:
            weights = f"components/{name}.weights"
            (folder / weights).write_bytes(bytes(_FILE_BYTES[name]))
            files[weights] = describe(folder, weights)
            paths = (*component.files, weights)
            component = replace(component, parameters=_PARAMETERS[name], files=paths)
        components[name] = component
    heavy = replace(bundle, components=components, files=tuple(files.values()))
    (folder / MANIFEST).write_bytes(codec.encode_pretty(heavy))
    assert manifest_sha256(folder)
    return folder


def _mib(size: int | None) -> float | None:
    return None if size is None else size / (1 << 20)


def _print(rows: Sequence[Compared], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            print(json.dumps({**row._asdict(), "is_met": row.is_met}))
        return
    table = Table("phone", "quantity", "measured", "truth", "error", "limit", "", "note")
    for row in rows:
        table.add_row(*_cells(row))
    Console(width=None if sys.stdout.isatty() else 200).print(table)


def _cells(row: Compared) -> Iterable[str]:
    kind = row.what.partition(",")[0]
    shown: Callable[[float], str] = _per_cent if kind in ("latency", "memory", "energy") else _plain
    met = {True: "met", False: "MISSED", None: "–"}[row.is_met]
    number = ["–" if value is None else f"{value:.4g}" for value in (row.measured, row.truth)]
    error = "–" if row.error is None else shown(row.error)
    return row.persona, row.what, *number, error, shown(LIMITS[kind]), met, row.note


def _per_cent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _plain(value: float) -> str:
    return f"{value:.2f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--personas", nargs="+", choices=PERSONAS, default=list(PERSONAS), metavar="NAME")
    parser.add_argument("--minutes", type=float, default=8.0, help="of model time, in each session")
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
