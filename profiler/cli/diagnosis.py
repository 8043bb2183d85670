"""`profile doctor`: what is there, what is missing, and how to get it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory

from profiler import __version__, catalog
from profiler.bundle_files import check_files, load_manifest
from profiler.cli.findings import Finding, disturbing, either, findings_table, missing, there, unavailable
from profiler.cli.output import print_json, print_result
from profiler.cli.phone_diagnosis import PhoneWanted, look_at_phone, look_for_phones
from profiler.cli.places import open_device, open_store
from profiler.clock import RealClock
from profiler.devices.power_saving import power_saving
from profiler.errors import MissingExtra, ProfilerError
from profiler.exporting import missing_packages
from profiler.runner.engines.installed import KINDS, installed, lack_of
from profiler.runner.gauges import EnvironmentGauge, MemoryGauge, WorkGauge, usable_cores
from profiler.validity.evidence import OTHERS_SHARE_OF_CORES

_MODEL = "nano"
_LOOK_S = 0.5


def doctor(store: Path | None, phone: PhoneWanted | None, *, as_json: bool) -> int:
    """Look at everything, or at one phone; exit 3 where the main job cannot run there."""
    if phone is not None:
        findings = list(look_at_phone(phone))
    else:
        findings = [finding for look in _LOOKS for finding in look(store)]
    if as_json:
        for finding in findings:
            print_json(finding)
    else:
        print_result(findings_table(findings))
    return 3 if any(finding.needed and finding.state == "missing" for finding in findings) else 0


def _versions(store: Path | None) -> Iterator[Finding]:
    yield there("profiler", f"{__version__}, Python {platform.python_version()}", needed=True)
    try:
        yield there("ONNX Runtime", version("onnxruntime"), needed=True)
    except PackageNotFoundError:
        yield missing("ONNX Runtime", "not installed", "pip install onnxruntime", needed=True)


def _more_engines(store: Path | None) -> Iterator[Finding]:
    """Look for the runtimes that bundles other than ONNX need."""
    found = installed()
    for name in found.keys() - KINDS.keys():
        yield there(f"engine {name}", f"{found[name]}, of a plug-in")
    for name, kind in KINDS.items():
        if kind.extra is None:
            continue
        if name in found:
            yield there(f"engine {name}", found[name])
        else:
            remedy = (lack_of(name).hint or "").strip()
            yield missing(f"engine {name}", f"its bundles (--runtime {name}) cannot be measured", remedy)


def _bundle(store: Path | None) -> Iterator[Finding]:
    folder = catalog.shipped_bundle(catalog.model(_MODEL))
    if folder is None:
        yield missing(f"{_MODEL} bundle", "not in this installation", "reinstall, or: make nano-bundle", needed=True)
        return
    try:
        check_files(folder, load_manifest(folder))
        yield there(f"{_MODEL} bundle", str(folder), needed=True)
    except ProfilerError as error:
        yield missing(f"{_MODEL} bundle", str(error), "reinstall, or: make nano-bundle", needed=True)


def _store(store: Path | None) -> Iterator[Finding]:
    root = open_store(store).root
    try:
        root.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=root):
            yield there("store", str(root), needed=True)
    except OSError as error:
        yield missing("store", f"{root}: {error.strerror}", "name another: --store DIR", needed=True)


def _device(store: Path | None) -> Iterator[Finding]:
    unit = open_device("local", RealClock()).unit()
    yield there("device local", f"{unit.processor}, {unit.logical_cores} cores", needed=True)
    with TemporaryDirectory() as folder:
        probe = Path(folder, "probe")
        probe.write_bytes(os.urandom(1 << 20))
        dropped = open_device("local", RealClock()).forget_files([probe])
    yield either(
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
    yield either(memory.peak_bytes is not None, "peak memory", memory.definition, memory.reason or "", "run on Linux")
    for field, (name, unit, scale, remedy) in _GAUGES.items():
        value = getattr(sample, field)
        detail = "" if value is None else f"{value / scale:.1f} {unit}"
        lack = gauge.missing.get(field, "no reading")
        yield there(name, detail) if value is not None else unavailable(name, lack, remedy)


def _disturbances(store: Path | None) -> Iterator[Finding]:
    """Look at what would raise a doubt about a measurement made right now."""
    clock, work = RealClock(), WorkGauge()
    clock.sleep(_LOOK_S)
    taken, cores = (work.others_percent() or 0.0) / 100, len(usable_cores())
    detail = f"other work uses {taken:.1f} of {cores} cores"
    quiet = taken <= OTHERS_SHARE_OF_CORES * cores
    yield there("quiet", detail) if quiet else disturbing("quiet", detail, "stop it before measuring")
    saving, source = power_saving()
    if saving:
        yield disturbing("full power", f"power saving is on: {source}", "switch it off before measuring")
    _, external = EnvironmentGauge(clock).battery()
    if external is False:
        yield disturbing("full power", "this computer runs on battery", "plug it in before measuring")


def _export_extra(store: Path | None) -> Iterator[Finding]:
    absent = missing_packages()
    if absent:
        remedy = (MissingExtra("exporting", "export").hint or "").strip()
        yield missing("export extra", f"without {', '.join(absent)}: only ready bundles can be measured", remedy)
    else:
        yield there("export extra", f"torch {version('torch')}, diffusers {version('diffusers')}")


def _phones(store: Path | None) -> Iterator[Finding]:
    return look_for_phones()


_LOOKS: tuple[Callable[[Path | None], Iterator[Finding]], ...] = (
    _versions,
    _bundle,
    _store,
    _device,
    _gauges,
    _disturbances,
    _export_extra,
    _more_engines,
    _phones,
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
