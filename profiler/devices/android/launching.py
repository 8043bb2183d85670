"""What `am start -W` and `pm install` say: both may fail with exit code 0, so their words decide."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from profiler.devices.android.numerals import fields_of, integer
from profiler.devices.android.unavailable import Unavailable

LaunchState = Literal["cold", "warm", "hot", "unknown"]

_LAUNCH_STATES: dict[str, LaunchState] = {"COLD": "cold", "WARM": "warm", "HOT": "hot"}
_ERROR = re.compile(r"^(?:Error(?: type -?\d+|:)|java\.lang\.\w+|Exception occurred|Bad component name|Aborted|Killed)")
_START_ADVICE = (
    ("does not exist", "The runner app is not installed, or is another version: install it again."),
    ("unable to resolve", "The runner app is not installed, or is another version: install it again."),
    ("SecurityException", "The phone forbids the start: check that the app is the one this version installs."),
    ("Permission Denial", "The phone forbids the start: check that the app is the one this version installs."),
    ("user is not running", "Unlock the phone once after its start, then try again."),
    ("Killed", "The phone ended the command, most likely for want of memory: restart the phone."),
)


class Launch(NamedTuple):
    """A started activity; `warning` is set where it was running already and was not started afresh."""

    state: LaunchState
    activity: str | None
    total_ms: int | None
    wait_ms: int | None
    warning: str | None


class Refusal(NamedTuple):
    """What the phone would not do: its own code or words, and what to do about it."""

    code: str
    detail: str | None
    what_to_do: str
    raw: str


class Installed(NamedTuple):
    """The package was installed."""


def read_launch(text: str) -> Launch | Refusal | Unavailable:
    """Read what `am start -W` printed; an error counts although the exit code may be 0."""
    lines = [line.strip() for line in text.splitlines()]
    errors = [line for line in lines if _ERROR.match(line)]
    fields = fields_of(lines)
    status = fields.get("Status", "").lower()
    if errors:
        return _refused_start(errors, text)
    if status and status != "ok":
        return Refusal(
            status, None, "The app did not come up in time: look at the phone's screen, then try again.", text
        )
    if not status:
        return Unavailable("am start printed neither a status nor an error", text)
    return Launch(
        state=_LAUNCH_STATES.get(fields.get("LaunchState", "").split(" ")[0], "unknown"),
        activity=fields.get("Activity"),
        total_ms=_milliseconds(fields.get("TotalTime")),
        wait_ms=_milliseconds(fields.get("WaitTime")),
        warning=fields.get("Warning"),
    )


def _refused_start(errors: list[str], text: str) -> Refusal:
    said = next((line for line in errors if not line.startswith("Error type")), errors[0])
    advice = next((advice for sign, advice in _START_ADVICE if sign in text), "Look at the phone's screen and its log.")
    return Refusal(said.removeprefix("Error:").strip(), None, advice, text)


def _milliseconds(text: str | None) -> int | None:
    """Return ms; am prints 0 or less where it measured nothing."""
    value = integer(text)
    return value if value and value > 0 else None


_FAILURE = re.compile(r"Failure \[(.*?)\]?\s*$", re.MULTILINE)
_CODE = re.compile(r"\b(INSTALL_(?:PARSE_)?FAILED_\w+|DELETE_FAILED_\w+|INSTALL_CANCELED_BY_USER)\b(?::?\s*(.*))?")
_UNINSTALL = "Remove the app that is on the phone (adb uninstall {package}), which deletes its data, then try again."
_TOO_OLD = "The app is built for an older Android than the phone accepts: build it anew."
_BROKEN = "The file is no whole app: build or download it again."
_INSTALL_ADVICE = {
    "INSTALL_FAILED_USER_RESTRICTED": (
        "The phone asks before it installs over USB: allow it on its screen; on Xiaomi, switch on"
        " 'Install via USB' in the developer options (it wants an account and a SIM card)."
    ),
    "INSTALL_CANCELED_BY_USER": "Somebody refused the installation on the phone's screen: allow it and try again.",
    "INSTALL_FAILED_ABORTED": "The installation was broken off, often on the phone's screen: allow it and try again.",
    "INSTALL_FAILED_UPDATE_INCOMPATIBLE": "The app on the phone is signed by somebody else. " + _UNINSTALL,
    "INSTALL_FAILED_SHARED_USER_INCOMPATIBLE": "The app on the phone is signed by somebody else. " + _UNINSTALL,
    "INSTALL_PARSE_FAILED_INCONSISTENT_CERTIFICATES": "The app on the phone is signed by somebody else. " + _UNINSTALL,
    "INSTALL_FAILED_VERSION_DOWNGRADE": "The app on the phone is newer than this one. " + _UNINSTALL,
    "INSTALL_FAILED_ALREADY_EXISTS": "The app is on the phone already: install with replacement (adb install -r).",
    "INSTALL_FAILED_INSUFFICIENT_STORAGE": "The phone's storage is full: delete files or apps on it, then try again.",
    "INSTALL_FAILED_MEDIA_UNAVAILABLE": "The phone's storage is not ready: unlock the phone once, then try again.",
    "INSTALL_FAILED_NO_MATCHING_ABIS": "The app is not built for this phone's processor: it needs arm64-v8a.",
    "INSTALL_FAILED_CPU_ABI_INCOMPATIBLE": "The app is not built for this phone's processor: it needs arm64-v8a.",
    "INSTALL_FAILED_OLDER_SDK": "This phone's Android is too old for the app: it needs Android 10 (API 29) or later.",
    "INSTALL_FAILED_NEWER_SDK": _TOO_OLD,
    "INSTALL_FAILED_DEPRECATED_SDK_VERSION": _TOO_OLD,
    "INSTALL_FAILED_TEST_ONLY": "The app is marked as test-only: install it with adb install -t, or build a release.",
    "INSTALL_FAILED_INVALID_APK": _BROKEN,
    "INSTALL_FAILED_INVALID_URI": "The phone did not find the file that was sent: free storage on it and try again.",
    "INSTALL_PARSE_FAILED_NOT_APK": _BROKEN,
    "INSTALL_PARSE_FAILED_UNEXPECTED_EXCEPTION": _BROKEN,
    "INSTALL_PARSE_FAILED_BAD_MANIFEST": _BROKEN,
    "INSTALL_PARSE_FAILED_NO_CERTIFICATES": "The app is not signed for this Android version: sign it (v2 or later).",
    "INSTALL_FAILED_VERIFICATION_FAILURE": (
        "The phone's app verification refused: switch off 'Verify apps over USB' in the developer options,"
        " or accept the app on its screen."
    ),
    "INSTALL_FAILED_VERIFICATION_TIMEOUT": (
        "The phone's app verification did not answer: give it a network, or switch off"
        " 'Verify apps over USB' in the developer options."
    ),
    "INSTALL_FAILED_DUPLICATE_PERMISSION": "Another app on the phone defines the same permission: remove that app.",
    "INSTALL_FAILED_CONFLICTING_PROVIDER": "Another app on the phone uses the same provider name: remove that app.",
    "INSTALL_FAILED_MISSING_SPLIT": "The app consists of several files: install them all (adb install-multiple).",
    "INSTALL_FAILED_MISSING_SHARED_LIBRARY": "The phone lacks a system library that the app needs: use another phone.",
    "INSTALL_FAILED_DEXOPT": "The phone could not compile the app, mostly for want of storage: free some.",
    "INSTALL_FAILED_INTERNAL_ERROR": "The phone's installer failed: restart the phone, then try again.",
    "INSTALL_FAILED_SESSION_INVALID": "The phone's installer failed: restart the phone, then try again.",
}
_ELSE = "Look the code up, or install the app by hand once to see what the phone says."


def read_install(text: str, package: str = "PACKAGE") -> Installed | Refusal | Unavailable:
    """Read what `adb install`, `pm install` or `cmd package install` printed about `package`."""
    code = _CODE.search(text)
    failure = _FAILURE.search(text)
    if code:
        advice = _INSTALL_ADVICE.get(code[1], _ELSE).format(package=package)
        return Refusal(code[1], (code[2] or "").strip().rstrip("]").strip() or None, advice, text)
    if failure:
        return Refusal(failure[1].strip() or "unknown", None, _ELSE, text)
    if any(line.strip() == "Success" for line in text.splitlines()):
        return Installed()
    if re.search(r"No space left on device|not enough space", text):
        return Refusal("no space", None, _INSTALL_ADVICE["INSTALL_FAILED_INSUFFICIENT_STORAGE"], text)
    return Unavailable("the installer printed neither success nor a failure", text)
