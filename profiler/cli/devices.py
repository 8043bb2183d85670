"""`profile devices`: what is connected and in which state, and what is known by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from profiler import catalog
from profiler.cli.listing import table_of
from profiler.cli.output import notes, print_json, print_result
from profiler.cli.places import open_device
from profiler.clock import RealClock
from profiler.devices.android.listing import Advice
from profiler.errors import DeviceError
from profiler.quantities import format_bytes
from profiler.records.record import Record
from profiler.report.terminal import plain
from profiler.report.words import one_line

if TYPE_CHECKING:
    from profiler.devices.android.adb import Server
    from profiler.devices.opening import Known

_WIDE = 160  # a device is one line in a log or a pipe


class Row(Record):
    """A device at hand, and for a phone the state that it is in; `serial` is only ever shown, never stored."""

    profile: str | None
    serial: str | None
    unit_id: str | None
    title: str
    system: str | None
    battery_percent: float | None
    external_power: bool | None
    battery_temperature_millicelsius: int | None
    free_storage_bytes: int | None
    state: str
    next_step: str | None


def devices(*, profiles: bool, connect: str | None, as_json: bool) -> int:
    """Print what is connected, after reaching for a phone on the network, or every profile that is known."""
    if profiles:
        return _print_profiles(as_json=as_json)
    if connect is not None:
        _reach(connect)
    rows = [_this_machine(), *_phones()]
    if as_json:
        for row in rows:
            print_json(row)
        return 0
    print_result(_device_table(rows), plain_width=_WIDE)
    for row in rows:
        if row.next_step:
            notes().print(plain(f"{row.serial or row.profile}: {row.next_step}", style="yellow"))
    return 0


def _reach(address: str) -> None:
    from profiler.devices.android.adb import Server

    Server().connect(address)


def _this_machine() -> Row:
    device = open_device("local", RealClock())
    unit, conditions = device.unit(), device.conditions(Path.cwd())
    return Row(
        profile="local",
        serial=None,
        unit_id=None,
        title=unit.processor or "this machine",
        system=unit.operating_system,
        battery_percent=conditions.power.battery_percent,
        external_power=conditions.power.external_power,
        battery_temperature_millicelsius=None,
        free_storage_bytes=conditions.free_storage_bytes,
        state="ready",
        next_step=None,
    )


def _phones() -> Iterator[Row]:
    from profiler.devices.android.adb import Server
    from profiler.devices.opening import known_phones

    server = Server()
    try:
        known = known_phones(server)
        warning = server.warning()
    except DeviceError as error:  # no adb here: then there are no phones either
        notes().print(plain(f"phones: {error}", style="yellow"))
        return
    if warning:
        notes().print(plain(warning, style="yellow"))
    for each in known:
        yield _phone(each, server)


def _phone(known: Known, server: Server) -> Row:
    from profiler.devices.android.shell import Shell
    from profiler.devices.android.state import conditions_of, read_state

    facts, advice = known.phone.facts, known.phone.advice
    state = "ready" if known.phone.ready else known.phone.state
    conditions, faked = None, None
    try:
        if known.phone.ready:
            with contextlib.closing(Shell(known.phone.transport(server))) as shell:
                told = read_state(shell)
            conditions, faked = conditions_of(told), told.faked
    except DeviceError as error:  # the others are listed all the same
        state, advice = "unreadable", Advice("", str(error))
    if faked is not None:
        state, advice = "overridden", Advice("", f"{faked.what} is overridden: {faked.reset_command}")
    return Row(
        profile=known.profile.name if known.profile else None,
        serial=known.phone.serial,
        unit_id=known.unit_id,
        title=" ".join(filter(None, (facts.manufacturer, facts.model))) if facts else "unknown",
        system=f"Android {facts.android_version or '?'}" if facts else None,
        battery_percent=conditions.power.battery_percent if conditions else None,
        external_power=conditions.power.external_power if conditions else None,
        battery_temperature_millicelsius=conditions.battery_temperature_millicelsius if conditions else None,
        free_storage_bytes=conditions.free_storage_bytes if conditions else None,
        state=state,
        next_step=advice.next_step or None,
    )


def _device_table(rows: Sequence[Row]) -> Table:
    table = table_of("device", "serial", "what", "system", "battery", "temperature", "free", "state")
    for row in rows:
        table.add_row(*(escape(one_line(cell, _WIDE)) for cell in _device_cells(row)))
    return table


def _device_cells(row: Row) -> tuple[str, ...]:
    heat = row.battery_temperature_millicelsius
    return (
        row.profile or "unknown",
        row.serial or "",
        row.title,
        row.system or "unknown",
        _battery(row),
        "" if heat is None else f"{heat / 1000:.1f} °C",
        format_bytes(row.free_storage_bytes),
        row.state,
    )


def _battery(row: Row) -> str:
    if row.battery_percent is None:
        return ""
    return f"{row.battery_percent:.0f} %" + (", plugged in" if row.external_power else "")


def _print_profiles(*, as_json: bool) -> int:
    found = catalog.device_profiles()
    if as_json:
        for profile in found.values():
            print_json(profile)
        return 0
    table = table_of("device", "what", "chip", "memory", "released")
    for name, profile in found.items():
        memory = " / ".join(format_bytes(size) for size in profile.memory_bytes)
        table.add_row(name, escape(profile.title), escape(profile.soc or ""), memory, profile.released or "")
    print_result(table, plain_width=_WIDE)
    return 0
