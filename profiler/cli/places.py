"""From what was typed to a store, a device and a policy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

from profiler import catalog, codec, tiers
from profiler.clock import Clock
from profiler.devices.android.cool_down import LEAST_PERCENT
from profiler.devices.device import Device
from profiler.errors import InputError
from profiler.leftovers import SetAside, Waiting, collect_abandoned
from profiler.records.device import Unit
from profiler.records.policy import Metric, Policy
from profiler.records.run import Run
from profiler.store import Store

OpenDevice = Callable[[str, Clock], Device]

_METRICS: dict[str, Metric] = {"latency": "latency", "peak-memory": "peak_memory", "size": "size"}


def open_store(path: Path | None) -> Store:
    """Return the store at a path, or the user's own."""
    if path is not None:
        return Store(usable(path, "a store", "Name another: --store DIR"))
    import platformdirs

    return Store(Path(platformdirs.user_data_dir("ondevice-profiler")) / "store")


def usable(path: Path, what: str, hint: str) -> Path:
    """Return a folder's full path. Raises InputError where no folder can have it, or no record could name it."""
    try:
        folder = path.expanduser().absolute()
        str(folder).encode()
        folder.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, UnicodeEncodeError):
            encoding = sys.getfilesystemencoding()
            reason = f"its name is no text in the encoding of this locale, {encoding}"
            hint = hint if encoding == "utf-8" else "Set PYTHONUTF8=1 or a UTF-8 locale, as LC_ALL=C.UTF-8."
        raise InputError(f"{str(path)!r} cannot be {what}: {reason}", hint=hint) from error
    return folder


def open_device(name: str, clock: Clock, serial: str | None = None, *, least_battery: int = LEAST_PERCENT) -> Device:
    """Return a device by the name of its profile, and a phone's serial where several are alike.

    Raises UnknownName, DeviceError.
    """
    from profiler.devices import opening

    return opening.open_device(name, clock, serial, least_battery=least_battery)


def open_unit(unit: Unit, clock: Clock) -> Device:
    """Return the device that a record was made on. Raises Away, UnknownName or DeviceError."""
    from profiler.devices import opening

    return opening.open_unit(unit, clock)


def open_policy(name: str, not_required: Iterable[str]) -> Policy:
    """Return a policy by name or file, without the metrics that are not required."""
    policy = codec.read_toml(Path(name), Policy) if name.endswith(".toml") else catalog.policy(name)
    for metric in dict.fromkeys(not_required):
        policy = tiers.without(policy, _METRICS[metric])
    return policy


Found = Run | SetAside | Waiting


def collect(store: Store, clock: Clock, *, at_work: Literal["wait", "stop"] = "wait") -> Iterator[Found]:
    """Collect what interrupted sessions left open."""
    return collect_abandoned(store, lambda session: open_unit(session.unit, clock), clock, at_work=at_work)


def tidy(store: Store, clock: Clock) -> Iterator[str]:
    """Collect what interrupted sessions left open, and say so in one line each."""
    return map(told, collect(store, clock))


def told(found: Found) -> str:
    """Say in one line what became of a session that was left open."""
    if isinstance(found, SetAside):
        return f"set aside {found.folder}, which cannot be collected: {found.reason}"
    if isinstance(found, Waiting):
        return f"run {found.session.run_id} waits to be collected: {found.reason}"
    return f"collected run {found.run_id}, whose host went away ({len(found.iterations)} images kept)"
