"""What a phone is: `getprop`, and the facts that a run records from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from profiler.devices.android.numerals import integer, truth
from profiler.devices.android.unavailable import Unavailable, refused

COMMAND = "getprop"

_START = re.compile(r"\[([^\]]+)\]: \[(.*)", re.DOTALL)


class Facts(NamedTuple):
    """The identity of a phone and of its system; None where it does not say.

    `virtual` names what says that this is no phone: an emulator's property or the virtual phone's.
    """

    serial: str | None
    manufacturer: str | None
    model: str | None
    device: str | None
    soc: str | None
    android_version: str | None
    api_level: int | None
    fingerprint: str | None
    security_patch: str | None
    kernel_abi: str | None
    abis: tuple[str, ...]
    debuggable: bool | None
    page_size_bytes: int | None
    reports_low_memory_kills: bool | None
    virtual: str | None


def read_properties(text: str) -> dict[str, str] | Unavailable:
    """Read `[name]: [value]` lines; a value may go on over several lines."""
    found: dict[str, str] = {}
    name, value = "", ""
    for line in text.splitlines():
        start = _START.match(line) if not name else None
        if start:
            name, value = start[1], start[2]
        elif name:
            value += f"\n{line}"
        if name and value.endswith("]"):
            found[name], name = value[:-1], ""
    if not found:
        return Unavailable(refused(text) or "no [name]: [value] lines", text)
    return found


def facts_of(properties: Mapping[str, str]) -> Facts:
    """Return the facts among a phone's properties."""
    return Facts(
        serial=_first(properties, "ro.serialno", "ro.boot.serialno"),
        manufacturer=_first(properties, "ro.product.manufacturer", "ro.product.vendor.manufacturer"),
        model=_first(properties, "ro.product.model", "ro.product.vendor.model"),
        device=_first(properties, "ro.product.device", "ro.product.vendor.device"),
        soc=_soc(properties),
        android_version=_first(properties, "ro.build.version.release_or_codename", "ro.build.version.release"),
        api_level=integer(properties.get("ro.build.version.sdk")),
        fingerprint=_first(properties, "ro.build.fingerprint", "ro.system.build.fingerprint"),
        security_patch=_first(properties, "ro.build.version.security_patch"),
        kernel_abi=_first(properties, "ro.product.cpu.abi"),
        abis=_listed(_first(properties, "ro.product.cpu.abilist", "ro.product.cpu.abi")),
        debuggable=truth(properties.get("ro.debuggable")),
        page_size_bytes=integer(_first(properties, "ro.boot.hardware.cpu.pagesize")),
        reports_low_memory_kills=truth(properties.get("persist.sys.lmk.reportkills")),
        virtual=_virtual(properties),
    )


def _first(properties: Mapping[str, str], *names: str) -> str | None:
    """Return the first property that says something; `unknown` does not."""
    values = (properties.get(name, "").strip() for name in names)
    return next((value for value in values if value and value.lower() != "unknown"), None)


def _soc(properties: Mapping[str, str]) -> str | None:
    """Return maker and model of the chip (Android 12 and later), else the name that the board goes by."""
    model = _first(properties, "ro.soc.model", "ro.vendor.soc.model")
    maker = _first(properties, "ro.soc.manufacturer")
    if model:
        return model if maker is None or model.startswith(maker) else f"{maker} {model}"
    return _first(properties, "ro.board.platform", "ro.hardware.chipname", "ro.hardware")


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _virtual(properties: Mapping[str, str]) -> str | None:
    names = ("ro.profiler.virtual", "ro.kernel.qemu", "ro.boot.qemu")
    return next((name for name in names if properties.get(name, "").strip() == "1"), None)
