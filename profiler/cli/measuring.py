"""`profile`: from what was typed to a measured, stored and judged run."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table

from profiler import catalog
from profiler.bundle_files import check_files, check_names, load_manifest, manifest_sha256
from profiler.cli import places
from profiler.cli.licences import tell_licence
from profiler.cli.output import notes, print_json, print_result, print_summary
from profiler.cli.places import OpenDevice, open_policy, open_store, tidy, usable
from profiler.cli.progress import ExportProgress, SessionProgress
from profiler.clock import Clock, RealClock
from profiler.devices.android.cool_down import LEAST_PERCENT
from profiler.devices.device import Device
from profiler.devices.power_switch import PowerSwitch
from profiler.errors import InputError
from profiler.exporting import ANY, Wanted, bundle_at, bundle_for, is_ready
from profiler.inputs import Wishes, job_inputs, plan_for
from profiler.quantities import format_bytes
from profiler.records.bundle import Bundle
from profiler.records.job import Measurement
from profiler.records.record import Task
from profiler.records.run import Run
from profiler.report.summary import summarise
from profiler.report.terminal import plain
from profiler.runner.engines.installed import engine_for
from profiler.session import Order, bundle_use, measure

_GAP_S, _MINUTES = 2.0, 10.0
_REST_S = 60.0  # slow gauges refresh every 30 s
_THREADS_PER_CORE = 16

__all__ = ["How", "Judging", "Wanted", "Wishes", "profile"]


class How(NamedTuple):
    """How often and in which manner, as typed; None for `gap` and `minutes` where nothing was."""

    protocol: str
    repeats: int
    warmups: int
    cold_starts: int
    observer_pairs: int
    gap: float | None
    minutes: float | None
    threads: int | None
    timeout: float
    untethered: bool = False
    usb_power: str | None = None


class Phone(NamedTuple):
    """Which phone, and how much charge it must have."""

    serial: str | None = None
    least_battery: int = LEAST_PERCENT


class Judging(NamedTuple):
    """Which policy, and which of its metrics are not asked for."""

    policy: str
    not_required: tuple[str, ...]


def profile(
    device_name: str,
    model: str | Path,
    task: str | None,
    wishes: Wishes,
    how: How,
    judging: Judging,
    wanted: Wanted = ANY,
    *,
    store: Path | None,
    dry_run: bool,
    as_json: bool,
    phone: Phone = Phone(),
    open_device: OpenDevice | None = None,
) -> int:
    """Measure, store, judge and print; return the exit code that the run's outcome stands for.

    `model` is a name or folder that may have to be exported first, or the path of a bundle.
    """
    clock = RealClock()
    _check_runtime(device_name, wanted)
    place = open_store(store)
    if not dry_run:  # before a phone is taken: what waits to be collected may lie on the same one
        for line in tidy(place, clock):
            notes().print(plain(line, style="dim"))
    with contextlib.closing(_opened(device_name, phone, clock, open_device)) as device:
        policy = open_policy(judging.policy, judging.not_required)
        if dry_run and isinstance(model, str) and not is_ready(model, wanted):
            return _say_export_comes_first(model, as_json=as_json)
        order = _order(_bundle(model, wanted), device, task, wishes, how)
        for line in order.inputs.notes:
            notes().print(plain(line, style="yellow"))
        if dry_run:
            return _say_what_would_be_done(order, device_name, place.root, as_json=as_json)
        with SessionProgress(notes(), order) as progress:
            run = measure(order, device, place, clock, progress.report)
    summary = summarise(run, place.folder(run.run_id), policy)
    print_json(summary) if as_json else print_summary(summary)
    return exit_code(run)


def _check_runtime(device: str, wanted: Wanted) -> None:
    """Refuse before an export what nothing here could run."""
    if wanted.runtime is not None and catalog.device_profile(device).platform == "host":
        engine_for(wanted.runtime, wanted.backend)


def _opened(name: str, phone: Phone, clock: Clock, open_device: OpenDevice | None) -> Device:
    if open_device is not None:
        return open_device(name, clock)
    return places.open_device(name, clock, phone.serial, least_battery=phone.least_battery)


def exit_code(run: Run) -> int:
    """Return what a run's outcome means to a shell."""
    if run.outcome == "failed":
        return 4 if (run.reason or "").startswith("runner_error") else 1
    return {"completed": 0, "refused": 2, "aborted": 3, "interrupted": 3}[run.outcome]


def _bundle(model: str | Path, wanted: Wanted) -> Path:
    if isinstance(model, Path):
        return usable(bundle_at(model, wanted), "a bundle", "Give it another name.")
    with ExportProgress(notes()) as progress:
        folder = bundle_for(model, progress.report, wanted, tell_licence)
    return usable(folder, "a bundle", "Give it another name.")


def _power_switch(how: How) -> PowerSwitch | None:
    if how.usb_power is None:
        return None
    if not how.untethered:
        raise InputError("--usb-power has no meaning without --untethered", hint="Add --untethered.")
    return PowerSwitch(how.usb_power)


def _check_host(how: How) -> None:
    """Refuse what makes no sense on a computer; far more threads than cores spin against each other for minutes."""
    if how.untethered:
        raise InputError("--untethered is for phones: nobody reads this computer's battery", hint="Leave it out.")
    threads = how.threads
    most = _THREADS_PER_CORE * (os.cpu_count() or 1)
    if threads is not None and threads > most:
        raise InputError(f"{threads} threads are too many for this machine", hint=f"It takes up to {most}.")


def _order(folder: Path, device: Device, task: str | None, wishes: Wishes, how: How) -> Order:
    """Check all that can be checked before anything is started."""
    if device.profile.platform == "host":
        _check_host(how)
    bundle = load_manifest(folder)
    device.engine_for(bundle.recipe)
    check_names(folder, bundle)
    check_files(folder, bundle, catalog.receipts())
    plan = plan_for(folder, bundle, _task(bundle, task, wishes), wishes.steps)
    return Order(
        bundle_folder=folder,
        bundle=bundle,
        bundle_sha256=manifest_sha256(folder),
        plan=plan,
        inputs=job_inputs(folder, bundle, plan, wishes),
        measurement=_measurement(how),
        cold_starts=how.cold_starts,
        warmups=how.warmups,
        repeats=how.repeats,
        observer_pairs=how.observer_pairs,
        threads=how.threads,
        stall_timeout_s=how.timeout,
        untethered=how.untethered,
        rest_s=_REST_S if how.untethered else 0.0,
        power_switch=_power_switch(how),
    )


def _task(bundle: Bundle, task: str | None, wishes: Wishes) -> Task:
    """Return the task asked for; a source image asks for an edit without a word."""
    wanted = task or ("edit" if wishes.image and "edit" in bundle.tasks else None)
    for known in sorted(bundle.tasks, reverse=True):  # generate comes first
        if wanted in (None, known):
            return known
    raise InputError(f"{bundle.model} cannot {wanted}; it can {' and '.join(bundle.tasks)}")


def _measurement(how: How) -> Measurement:
    for option, value, protocol in (("--gap", how.gap, "spaced"), ("--minutes", how.minutes, "sustained")):
        if value is not None and how.protocol != protocol:
            raise InputError(
                f"{option} has no meaning with --protocol {how.protocol}", hint=f"Add --protocol {protocol}."
            )
    if how.protocol == "spaced":
        return Measurement(kind="spaced", gap_s=_GAP_S if how.gap is None else how.gap)
    if how.protocol == "sustained":
        return Measurement(kind="sustained", minutes=_MINUTES if how.minutes is None else how.minutes)
    return Measurement(kind="burst")


def _say_export_comes_first(model: str, *, as_json: bool) -> int:
    facts: dict[str, object] = {"dry_run": True, "model": model, "first": "export its bundle (profile export)"}
    print_json(facts) if as_json else print_result(_facts_table(facts))
    return 0


def _say_what_would_be_done(order: Order, device: str, store: Path, *, as_json: bool) -> int:
    facts = _facts(order, device, store)
    print_json(facts) if as_json else print_result(_facts_table(facts))
    return 0


def _facts(order: Order, device: str, store: Path) -> dict[str, object]:
    use = bundle_use(order.bundle, order.bundle_sha256, order.plan)
    return {
        "dry_run": True,
        "device": device,
        "model": order.bundle.model,
        "task": order.plan.task,
        "steps": order.plan.steps,
        "prompt": order.inputs.prompt,
        "seed": order.inputs.seed,
        "bundle": str(order.bundle_folder),
        "precision": order.bundle.recipe.precision,
        "text_encoder": order.bundle.recipe.text_encoder,
        "size_bytes": use.size_bytes,
        "protocol": order.measurement.kind,
        "cold_starts": order.cold_starts,
        "warmups": order.warmups,
        "repeats": None if order.measurement.kind == "sustained" else order.repeats,
        "minutes": order.measurement.minutes,
        "observer_pairs": order.observer_pairs,
        "store": str(store),
    }


def _facts_table(facts: dict[str, object]) -> RenderableType:
    table = Table(
        box=None, show_header=False, title="Nothing was started; this is what would be done", title_justify="left"
    )
    for name, value in facts.items():
        if name != "dry_run" and value is not None:
            text = format_bytes(int(str(value))) if name == "size_bytes" else str(value)
            table.add_row(name.removesuffix("_bytes").replace("_", " "), plain(text))
    return table
