"""What an adb server lists, and what each state of a phone in it calls for."""

from __future__ import annotations

import re
from typing import NamedTuple

READY = "device"
NO_PERMISSIONS = "no permissions"
# `adb devices` writes this where a phone does not tell its serial.
NO_SERIAL = "(no serial number)"


class Listed(NamedTuple):
    """One line of `adb devices -l`: a way to a phone. `explanation` is what the server adds to a state."""

    serial: str
    state: str
    transport_id: int | None
    details: dict[str, str]
    explanation: str = ""

    @property
    def by_usb(self) -> bool:
        """Tell whether the way is a cable; the server names the port of one."""
        return "usb" in self.details


_STATES = (
    *("device", "offline", "unauthorized", "authorizing", "connecting", "detached", "unknown"),
    *("recovery", "rescue", "sideload", "bootloader", "host", "no permissions"),
)
# Serials may hold blanks ("adb-1A2B (2)._adb-tls-connect._tcp"), so the first word that is a state ends one.
_LINE = re.compile(
    rf"^(?P<serial>\S.*?)\s+(?P<state>{'|'.join(_STATES)})(?=\s|$)(?P<explanation>.*?)"
    r"(?P<details>(?:\s+[a-z_]+:\S*)*)\s*$"
)
_UNKNOWN_STATE = re.compile(r"^(?P<serial>\S+)\s+(?P<state>\S+)(?P<explanation>)(?P<details>(?:\s+[a-z_]+:\S*)*)\s*$")


def parse_listing(text: str) -> tuple[Listed, ...]:
    """Read the answer to `host:devices-l`; a line of another shape is left out."""
    matches = (_LINE.match(line) or _UNKNOWN_STATE.match(line) for line in text.splitlines())
    return tuple(_listed(match) for match in matches if match)


def _listed(match: re.Match[str]) -> Listed:
    details = dict(part.split(":", 1) for part in match["details"].split())
    number = details.get("transport_id", "")
    # An explanation of missing permissions is followed by the bare path of the port in some versions.
    if match["state"] == NO_PERMISSIONS and "usb" not in details:
        details["usb"] = ""
    return Listed(
        serial=match["serial"],
        state=match["state"],
        transport_id=int(number) if number.isdigit() else None,
        details=details,
        explanation=match["explanation"].strip().rstrip(";").strip(),
    )


class Advice(NamedTuple):
    """What a state means, as the end of a sentence that begins with the phone; and what to do."""

    meaning: str
    next_step: str


_UDEV = (
    "On Linux install the udev rules (package android-sdk-platform-tools-common, or android-udev-rules), add yourself"
    " to the group plugdev, log in again and replug the cable."
)
_ALLOW = (
    "Unlock it and accept “Allow USB debugging”. If it does not ask: Developer options → Revoke USB debugging"
    " authorizations, then replug the cable."
)
_BOOT = "Start Android on it: adb reboot (from a bootloader: fastboot reboot), or hold its power button."

STATES = {
    READY: Advice("is ready", ""),
    "unauthorized": Advice("does not trust this computer yet", _ALLOW),
    "authorizing": Advice("is being asked whether it trusts this computer", _ALLOW),
    "connecting": Advice("is still connecting", "Wait a few seconds and try again."),
    "offline": Advice(
        "is listed but offline: its debugging service does not answer",
        "Replug the cable; if that does not help, switch USB debugging off and on. Over Wi-Fi: adb disconnect, then"
        " adb connect.",
    ),
    NO_PERMISSIONS: Advice("may not be opened by this user", _UDEV),
    "detached": Advice("is held by another program", "Attach it again: adb attach, or end the other program."),
    "recovery": Advice("is in recovery mode, where no app runs", _BOOT),
    "rescue": Advice("is in rescue mode, where no app runs", _BOOT),
    "sideload": Advice("waits for an update (sideload), and no app runs", _BOOT),
    "bootloader": Advice("is in its bootloader, where no app runs", _BOOT),
    "host": Advice("is not a phone but another computer", "Name another device."),
}
ZOMBIE = Advice(
    "is listed as ready but does not answer",
    "Replug the cable; if that does not help, restart the phone. Over Wi-Fi: adb disconnect, then adb connect.",
)


def advice(state: str) -> Advice:
    """Return what a state calls for; one that is not known is named."""
    return STATES.get(state, Advice(f"is in the state {state!r}", "Replug the cable, or restart the phone."))
