"""`profile doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from rich.markup import escape
from rich.table import Table

from profiler import __version__, catalog
from profiler.bundle_files import check_files, load_manifest
from profiler.cli.output import print_json, print_result
from profiler.cli.places import open_device, open_store
from profiler.clock import RealClock
from profiler.devices.power_saving import power_saving
from profiler.errors import MissingExtra, ProfilerError
from profiler.exporting import missing_packages
from profiler.records.record import Record
from profiler.runner.engines.installed import KINDS, installed, lack_of
from profiler.runner.gauges import EnvironmentGauge, MemoryGauge, WorkGauge, usable_cores
from profiler.validity.evidence import OTHERS_SHARE_OF_CORES

_MODEL = "nano"
_LOOK_S = 0.5


class Finding(Record):
    """One thing looked at; `needed` says whether the main job depends on it.

    `unavailable` is what this machine may simply not have, such as a battery; `disturbing` would spoil a measurement
    made now.
    """

    what: str
    state: Literal["there", "missing", "unavailable", "disturbing"]
    detail: str
    remedy: str | None
    needed: bool


def doctor(store: Path | None, *, as_json: bool) -> int:
    """Look at everything; exit 3 where the main job cannot run."""
    findings = [finding for look in _LOOKS for finding in look(store)]
    if as_json:
        for finding in findings:
            print_json(finding)
    else:
        print_result(_table(findings))
    return 3 if any(finding.needed and finding.state == "missing" for finding in findings) else 0


def _versions(store: Path | None) -> Iterator[Finding]:
    yield _there("profiler", f"{__version__}, Python {platform.python_version()}", needed=True)
    try:
        yield _there("ONNX Runtime", version("onnxruntime"), needed=True)
    except PackageNotFoundError:
        yield _missing("ONNX Runtime", "not installed", "pip install onnxruntime", needed=True)


def _more_engines(store: Path | None) -> Iterator[Finding]:
    """Look for the runtimes that bundles other than ONNX need."""
    there = installed()
    for name in there.keys() - KINDS.keys():
        yield _there(f"engine {name}", f"{there[name]}, of a plug-in")
    for name, kind in KINDS.items():
        if kind.extra is None:
            continue
        if name in there:
            yield _there(f"engine {name}", there[name])
        else:
            remedy = (lack_of(name).hint or "").strip()
            yield _missing(f"engine {name}", f"its bundles (--runtime {name}) cannot be measured", remedy)


def _bundle(store: Path | None) -> Iterator[Finding]:
    folder = catalog.shipped_bundle(catalog.model(_MODEL))
    if folder is None:
        yield _missing(f"{_MODEL} bundle", "not in this installation", "reinstall, or: make nano-bundle", needed=True)
        return
    try:
        check_files(folder, load_manifest(folder))
        yield _there(f"{_MODEL} bundle", str(folder), needed=True)
    except ProfilerError as error:
        yield _missing(f"{_MODEL} bundle", str(error), "reinstall, or: make nano-bundle", needed=True)


def _store(store: Path | None) -> Iterator[Finding]:
    root = open_store(store).root
    try:
        root.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=root):
            yield _there("store", str(root), needed=True)
    except OSError as error:
        yield _missing("store", f"{root}: {error.strerror}", "name another: --store DIR", needed=True)


def _device(store: Path | None) -> Iterator[Finding]:
    unit = open_device("local", RealClock()).unit()
    yield _there("device local", f"{unit.processor}, {unit.logical_cores} cores", needed=True)
    with TemporaryDirectory() as folder:
        probe = Path(folder, "probe")
        probe.write_bytes(os.urandom(1 << 20))
        dropped = open_device("local", RealClock()).forget_files([probe])
    yield _either(
        dropped == "dropped",
        "cold loads",
        "files can be dropped from the page cache",
        "loads read from the page cache",
        "keep bundles and temporary files on a disk, not in memory",
    )


def _gauges(store: Path | None) -> Iterator[Finding]:
    clock = RealClock()
    gauge = EnvironmentGauge(clock)
    sample = gauge.sample()
    memory = MemoryGauge(clock).read()
    yield _either(memory.peak_bytes is not None, "peak memory", memory.definition, memory.reason or "", "run on Linux")
    for field, (name, unit, scale, remedy) in _GAUGES.items():
        value = getattr(sample, field)
        detail = "" if value is None else f"{value / scale:.1f} {unit}"
        lack = gauge.missing.get(field, "no reading")
        yield _there(name, detail) if value is not None else _unavailable(name, lack, remedy)


def _disturbances(store: Path | None) -> Iterator[Finding]:
    """Look at what would raise a doubt about a measurement made right now."""
    clock, work = RealClock(), WorkGauge()
    clock.sleep(_LOOK_S)
    taken, cores = (work.others_percent() or 0.0) / 100, len(usable_cores())
    detail = f"other work uses {taken:.1f} of {cores} cores"
    quiet = taken <= OTHERS_SHARE_OF_CORES * cores
    yield _there("quiet", detail) if quiet else _disturbing("quiet", detail, "stop it before measuring")
    saving, source = power_saving()
    if saving:
        yield _disturbing("full power", f"power saving is on: {source}", "switch it off before measuring")
    _, external = EnvironmentGauge(clock).battery()
    if external is False:
        yield _disturbing("full power", "this computer runs on battery", "plug it in before measuring")


def _export_extra(store: Path | None) -> Iterator[Finding]:
    missing = missing_packages()
    if missing:
        remedy = (MissingExtra("exporting", "export").hint or "").strip()
        yield _missing("export extra", f"without {', '.join(missing)}: only ready bundles can be measured", remedy)
    else:
        yield _there("export extra", f"torch {version('torch')}, diffusers {version('diffusers')}")


_LOOKS: tuple[Callable[[Path | None], Iterator[Finding]], ...] = (
    _versions,
    _bundle,
    _store,
    _device,
    _gauges,
    _disturbances,
    _export_extra,
    _more_engines,
)
_GAUGES = {
    "temperature_millicelsius": (
        "temperature",
        "°C",
        1000,
        "virtual machines have none; on a PC load the sensor's kernel module (lm-sensors)",
    ),
    "battery_percent": ("battery", "%", 1, "desktops and virtual machines have none"),
    "cpu_frequency_khz": ("processor clock", "GHz", 1_000_000, "virtual machines often hide it"),
}


def _there(what: str, detail: str, *, needed: bool = False) -> Finding:
    return Finding(what=what, state="there", detail=detail, remedy=None, needed=needed)


def _missing(what: str, detail: str, remedy: str, *, needed: bool = False) -> Finding:
    return Finding(what=what, state="missing", detail=detail, remedy=remedy, needed=needed)


def _unavailable(what: str, detail: str, remedy: str) -> Finding:
    return Finding(what=what, state="unavailable", detail=detail, remedy=remedy, needed=False)


def _disturbing(what: str, detail: str, remedy: str) -> Finding:
    return Finding(what=what, state="disturbing", detail=detail, remedy=remedy, needed=False)


def _either(there: bool, what: str, detail: str, lack: str, remedy: str) -> Finding:
    return _there(what, detail) if there else _missing(what, lack, remedy)


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("", "what", "found", "to know"):
        table.add_column(column)
    for finding in findings:
        mark = {
            "there": "[green]ok[/green]",
            "missing": "[red]missing[/red]" if finding.needed else "[yellow]missing[/yellow]",
            "unavailable": "[dim]none[/dim]",
            "disturbing": "[yellow]not now[/yellow]",
        }
        table.add_row(mark[finding.state], finding.what, escape(finding.detail), escape(finding.remedy or ""))
    return table
