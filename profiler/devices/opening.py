"""From a name to a device: this machine, or the connected phone that is meant."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from profiler import catalog, locks
from profiler.clock import Clock
from profiler.devices.android.adb import Server
from profiler.devices.android.cool_down import LEAST_PERCENT
from profiler.devices.android.device import AndroidDevice, Patience
from profiler.devices.android.phones import Phone, find_phones
from profiler.devices.android.properties import Facts
from profiler.devices.device import Away, Device
from profiler.devices.local import LocalDevice
from profiler.errors import DeviceError, InputError
from profiler.records.device import GENERIC_PHONE, DeviceProfile, Unit

_UNIT_ID_DIGITS = 12


class Known(NamedTuple):
    """A connected phone and the profile that it has."""

    phone: Phone
    profile: DeviceProfile | None

    @property
    def unit_id(self) -> str:
        """Return what records call it."""
        return unit_id_of(self.phone.serial)


def open_device(name: str, clock: Clock, serial: str | None = None, *, least_battery: int = LEAST_PERCENT) -> Device:
    """Return a device by the name of its profile; `android` is any phone, which is taken for this process alone.

    A phone with less than `least_battery` per cent will not settle. Raises UnknownName or DeviceError.
    """
    profile = catalog.device_profile(name)
    if profile.platform == "host":
        if serial is not None:
            raise InputError(f"--serial names a phone, and {name} is none", hint="Leave it out, or name a phone.")
        return LocalDevice(profile, clock)
    server = Server()
    found = choose(known_phones(server), profile, serial)
    return opened(found, server, clock, least_battery=least_battery)


def open_unit(unit: Unit, clock: Clock) -> Device:
    """Return the very device of a record again. Raises Away where it is not connected, UnknownName, DeviceError."""
    if unit.platform == "host":
        return LocalDevice(catalog.device_profile(unit.profile), clock)
    server = Server()
    for known in known_phones(server):
        if known.unit_id == unit.unit_id and known.phone.ready:
            return opened(known, server, clock)
    raise Away(f"{unit.profile} (unit {unit.unit_id}) is not connected", hint="Connect it, then: profile collect")


def known_phones(server: Server) -> tuple[Known, ...]:
    """Return all connected phones, with the profile of those that answer. Raises DeviceError."""
    return tuple(Known(phone, _profile(phone.facts) if phone.facts else None) for phone in find_phones(server))


def choose(phones: Sequence[Known], profile: DeviceProfile, serial: str | None) -> Known:
    """Return the one phone that is meant. Raises DeviceError where none or several are."""
    named = [known for known in phones if serial is None or serial in _names(known.phone)]
    ready = [known for known in named if known.phone.ready and _fits(known, profile)]
    if len(ready) == 1:
        return ready[0]
    if len(ready) > 1:
        names = ", ".join(known.phone.serial for known in ready)
        raise DeviceError(f"{len(ready)} phones may be meant: {names}", hint="Say which: --serial SERIAL")
    raise DeviceError(_why_none(named or phones, profile, serial), hint=_what_to_do(named or phones))


def unit_id_of(serial: str) -> str:
    """Return what records call the phone with this serial: they do not give the serial away."""
    return hashlib.sha256(serial.encode()).hexdigest()[:_UNIT_ID_DIGITS]


def opened(
    known: Known,
    server: Server,
    clock: Clock,
    leases: Path | None = None,
    *,
    least_battery: int = LEAST_PERCENT,
    patience: Patience = Patience(),
) -> AndroidDevice:
    """Take a phone for this process, noted in `leases`, and open it. Raises DeviceError where another has it."""
    profile = known.profile or catalog.device_profile(GENERIC_PHONE)
    lease = _lease(leases or _leases(), known)
    return AndroidDevice(
        profile,
        known.phone,
        known.unit_id,
        server,
        clock,
        lease=lease,
        least_battery=least_battery,
        patience=patience,
    )


def _lease(folder: Path, known: Known) -> IO[str]:
    path = folder / f"{known.unit_id}.lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lease = locks.hold(path)
    except OSError as error:
        raise DeviceError(
            f"cannot note that phone {known.phone.serial} is in use: {path}: {error.strerror or error}",
            hint="Make that folder writable, or name another for all that is cached: XDG_CACHE_HOME.",
        ) from error
    if lease is None:
        raise DeviceError(
            f"phone {known.phone.serial} is in use: another profile command on this computer measures on it",
            hint="Wait until that one is done.",
        )
    return lease


def _leases() -> Path:
    return catalog.bundle_cache().with_name("units")


def _profile(facts: Facts) -> DeviceProfile:
    names = {"ro.product.model": facts.model, "ro.product.device": facts.device}
    return catalog.profile_of({key: name for key, name in names.items() if name})


def _fits(known: Known, profile: DeviceProfile) -> bool:
    return profile.name == GENERIC_PHONE or known.profile == profile


def _names(phone: Phone) -> Iterable[str]:
    return (phone.serial, *(way.serial for way in phone.ways))


def _why_none(phones: Sequence[Known], profile: DeviceProfile, serial: str | None) -> str:
    if not phones:
        return "no phone is connected"
    wanted = "phone" if profile.name == GENERIC_PHONE else profile.title
    named = "" if serial is None else f" with the serial {serial}"
    return f"no {wanted}{named} is ready; connected: {'; '.join(map(_told, phones))}"


def _told(known: Known) -> str:
    if known.phone.ready:
        return f"{known.phone.serial}, {known.profile.title if known.profile else 'an unknown phone'}"
    return f"{known.phone.serial}, which {known.phone.advice.meaning}"


def _what_to_do(phones: Sequence[Known]) -> str:
    if not phones:
        return "Plug one in with USB debugging switched on (Developer options), or: adb connect ADDRESS"
    waiting = [known.phone.advice.next_step for known in phones if not known.phone.ready]
    ready = [
        f"To measure on {known.phone.serial}: --device {known.profile.name}."
        for known in phones
        if known.phone.ready and known.profile
    ]
    return " ".join([*dict.fromkeys(waiting), *ready[:1]])
