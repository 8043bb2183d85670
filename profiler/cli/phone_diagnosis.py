"""`profile doctor` on phones: which are ready, and what would disturb a measurement on one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from profiler.cli.findings import Finding, disturbing, missing, there, unavailable
from profiler.cli.places import open_device
from profiler.clock import RealClock
from profiler.devices.android.adb import Server
from profiler.devices.android.cool_down import LEAST_PERCENT, MOST_PERCENT, Bars
from profiler.devices.android.device import AndroidDevice
from profiler.devices.android.state import conditions_of
from profiler.devices.opening import Known, known_phones
from profiler.errors import DeviceError, InputError
from profiler.quantities import format_bytes
from profiler.records.device import Conditions


class PhoneWanted(NamedTuple):
    """The phone to look at, as typed."""

    device: str
    serial: str | None


def look_for_phones() -> Iterator[Finding]:
    """Say whether adb answers, and of each phone whether it can be measured on."""
    server = Server()
    try:
        version, warning = server.version(), server.warning()
        phones = known_phones(server)
    except DeviceError as error:
        yield missing("adb", str(error).splitlines()[0], error.hint or "")
        return
    yield disturbing("adb", f"server 1.0.{version}", warning) if warning else there("adb", f"server 1.0.{version}")
    if not phones:
        yield unavailable("phones", "none is connected", "plug one in with USB debugging switched on")
    for known in phones:
        yield _found(known)


def _found(known: Known) -> Finding:
    phone, name = known.phone, f"phone {known.phone.serial}"
    if not phone.ready:
        return missing(name, f"it {phone.advice.meaning}", phone.advice.next_step)
    title = known.profile.title if known.profile else "unknown"
    return there(name, f"{title}; look at it: profile doctor --device {known.profile.name if known.profile else ''}")


def look_at_phone(wanted: PhoneWanted) -> Iterator[Finding]:
    """Look at one phone. Raises DeviceError where it cannot be opened, InputError where it is none."""
    device = open_device(wanted.device, RealClock(), wanted.serial)
    with contextlib.closing(device):
        if not isinstance(device, AndroidDevice):
            raise InputError(f"{wanted.device} is no phone", hint="Leave --device out to look at this computer.")
        yield there(f"phone {device.phone.serial}", device.profile.title, needed=True)
        yield _runner_app(device)
        yield from _conditions(device)


def _runner_app(device: AndroidDevice) -> Finding:
    version = device.app.version()
    if version is None:
        return missing("runner app", "not installed", "profile install APK", needed=True)
    return there("runner app", f"version {version.code or 'unknown'}", needed=True)


def _conditions(device: AndroidDevice) -> Iterator[Finding]:
    try:
        found = conditions_of(device.state())
    except DeviceError as error:
        yield missing("battery and heat", str(error).splitlines()[0], error.hint or "", needed=True)
        return
    yield _charge(found)
    yield _heat(found)
    yield there("free storage", format_bytes(found.free_storage_bytes))
    yield there("available memory", format_bytes(found.available_memory_bytes))
    if found.locked:
        yield disturbing("unlocked", "the screen is locked", "unlock it; without a PIN this is done for you")
    if found.power_save:
        yield disturbing("full power", "the battery saver is on", "it is switched off for the measurement")
    limit, top = found.cpu_frequency_limit_khz, found.cpu_frequency_max_khz
    if limit and top and limit < top:
        yield disturbing("full clock", f"limited to {limit / 1e6:.2f} of {top / 1e6:.2f} GHz", "let it cool")


def _charge(found: Conditions) -> Finding:
    percent = found.power.battery_percent
    if percent is None:
        return unavailable("battery", found.power.reason or "no reading", "the phone does not tell")
    plugged = ", on external power" if found.power.external_power else ""
    if not LEAST_PERCENT <= percent <= MOST_PERCENT:
        advice = f"between {LEAST_PERCENT} and {MOST_PERCENT} % is best"
        return disturbing("battery", f"{percent:.0f} %{plugged}", advice)
    return there("battery", f"{percent:.0f} %{plugged}")


def _heat(found: Conditions) -> Finding:
    own, processor = found.battery_temperature_millicelsius, found.temperature_millicelsius
    told = [f"{what} {value / 1000:.1f} °C" for what, value in (("battery", own), ("processor", processor)) if value]
    if not told:
        return unavailable("temperature", found.temperature_reason or "no reading", "cooling down cannot be waited for")
    bars = Bars()
    if (own or 0) >= bars.battery_millicelsius or (processor or 0) >= bars.processor_millicelsius:
        bar = (
            f"battery {bars.battery_millicelsius / 1000:.0f} °C, processor {bars.processor_millicelsius / 1000:.0f} °C"
        )
        return disturbing("temperature", ", ".join(told), f"a run waits until it is below {bar}")
    return there("temperature", ", ".join(told))
