"""What an adb server's refusals mean, and what to do about them."""

from __future__ import annotations

from profiler.devices.android.listing import advice
from profiler.errors import DeviceError


class NotConnected(DeviceError):
    """The server does not know the phone (any more)."""


def refusal(text: str, request: str, serial: str) -> DeviceError:
    """Return the error for a server's FAIL."""
    who, said = serial or "a phone", text.strip().splitlines()[0] if text.strip() else "no reason given"
    if "not found" in said and "device" in said:
        return NotConnected(f"{who} is not connected", hint="Check its cable or network; see: profile devices")
    for sign, state in _SIGNS.items():
        if sign in said:
            found = advice(state)
            return DeviceError(f"{who} {found.meaning}", hint=found.next_step)
    if said == "closed":
        return DeviceError(f"{who} does not offer {request!r}, or has just gone", hint="See: profile devices")
    return DeviceError(f"{who}: adb refuses {request!r}: {said}", hint="See: profile devices")


_SIGNS = {
    "unauthorized": "unauthorized",
    "still authorizing": "authorizing",
    "still connecting": "connecting",
    "offline": "offline",
    "insufficient permissions": "no permissions",
    "no permissions": "no permissions",
}
