"""How processes of an app ended: `dumpsys activity exit-info`, which Android keeps from version 11 on."""

from __future__ import annotations

import re
from typing import NamedTuple

from profiler.devices.android.numerals import decimal, integer
from profiler.devices.android.unavailable import Unavailable, refused

COMMAND = "dumpsys activity exit-info"

# android.app.ApplicationExitInfo, API 36.
EXIT_REASONS = {
    0: "unknown",
    1: "exit self",
    2: "signaled",
    3: "low memory",
    4: "crash",
    5: "native crash",
    6: "ANR",
    7: "initialization failure",
    8: "permission change",
    9: "excessive resource usage",
    10: "user requested",
    11: "user stopped",
    12: "dependency died",
    13: "other",
    14: "freezer",
    15: "package state change",
    16: "package updated",
}

_RECORD = re.compile(r"ApplicationExitInfo #\d+:")
# A description is free text, with equal signs of its own; whatever else follows it stands behind ` state=`.
_DESCRIPTION = re.compile(r"\bdescription=(.*?)(?=\s+(?:state|trace)=|\n|$)")
# Any other value ends where the next known key begins: names of reasons hold spaces.
_KEYS = (
    "timestamp|pid|realUid|packageUid|definingUid|user|package|process|reason|subreason|status|importance|pss|rss|"
    "state|trace|hasForegroundServices"
)
_FIELD = re.compile(rf"(?:^|\s)({_KEYS})=(.*?)(?=\s(?:{_KEYS})=|$)", re.DOTALL)
_CODE = re.compile(r"(-?\d+)\s*(?:\((.*)\))?", re.DOTALL)
_SIZE = re.compile(r"([\d.,٫]+)\s*([KMG]?)(i?B)?")
_SIZES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


class Exit(NamedTuple):
    """One past exit; `status` is an exit code or, for a signal, its number. `pss` and `rss` are last samples."""

    pid: int | None
    process: str | None
    reason_code: int | None
    reason: str | None
    subreason_code: int | None
    subreason: str | None
    status: int | None
    importance: int | None
    pss_bytes: int | None
    rss_bytes: int | None
    timestamp: str | None
    description: str | None
    state_summary: str | None


def read_exit_info(text: str) -> tuple[Exit, ...] | Unavailable:
    """Read what `dumpsys activity exit-info <package>` printed (Android 11 and later), newest first."""
    parts = _RECORD.split(text)
    if len(parts) == 1 and "EXIT INFO" not in text:
        return Unavailable(refused(text) or "no exit info in what dumpsys printed", text)
    return tuple(_exit(part) for part in parts[1:])


def _exit(part: str) -> Exit:
    described = _DESCRIPTION.search(part)
    fields = {name: value.strip() for name, value in reversed(_FIELD.findall(_DESCRIPTION.sub("", part)))}
    reason_code, reason = _code(fields.get("reason"))
    subreason_code, subreason = _code(fields.get("subreason"))
    return Exit(
        pid=integer(fields.get("pid")),
        process=fields.get("process") or fields.get("package"),
        reason_code=reason_code,
        reason=EXIT_REASONS.get(-1 if reason_code is None else reason_code) or reason,
        subreason_code=subreason_code,
        subreason=subreason,
        status=integer(fields.get("status")),
        importance=integer(fields.get("importance")),
        pss_bytes=_size(fields.get("pss")),
        rss_bytes=_size(fields.get("rss")),
        timestamp=fields.get("timestamp"),
        description=_told(described[1].strip() if described else None),
        state_summary=_told(fields.get("state")),
    )


def _code(text: str | None) -> tuple[int | None, str | None]:
    match = _CODE.match(text or "")
    return (integer(match[1]), match[2]) if match else (None, text)


def _told(text: str | None) -> str | None:
    return None if text in (None, "", "null", "empty") else text


def _size(text: str | None) -> int | None:
    """Return the bytes of `39MB`, `1.2GB`, `12M` or `557,00KB`; 0 means that the system had no sample yet."""
    match = _SIZE.fullmatch((text or "").strip())
    value = decimal(match[1]) if match else None
    return None if match is None or not value else round(value * _SIZES[match[2]]) or None
