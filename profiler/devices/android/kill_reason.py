"""Why a process ended, in words: what its exit info and the log's kill lines say together."""

from __future__ import annotations

from collections.abc import Sequence
from signal import Signals
from typing import Literal, NamedTuple

from profiler.devices.android.exits import Exit
from profiler.devices.android.kill_lines import Kill
from profiler.quantities import format_bytes

Cause = Literal[
    "low_memory",
    "likely_low_memory",
    "crash",
    "native_crash",
    "anr",
    "request",
    "signal",
    "freezer",
    "excessive_resource",
    "exit",
    "other",
]
_CAUSES: dict[int, Cause] = {
    1: "exit",
    3: "low_memory",
    4: "crash",
    5: "native_crash",
    6: "anr",
    7: "crash",
    8: "request",
    9: "excessive_resource",
    10: "request",
    11: "request",
    12: "other",
    13: "other",
    14: "freezer",
    15: "request",
    16: "request",
}
_WORDS: dict[Cause, str] = {
    "low_memory": "killed because the phone ran out of memory",
    "crash": "crashed",
    "native_crash": "crashed in native code",
    "anr": "killed because it did not respond (ANR)",
    "request": "stopped on request",
    "freezer": "killed by the app freezer",
    "excessive_resource": "killed for excessive use of resources",
    "exit": "ended by itself",
    "other": "killed by the system",
}
# Signals that a process raises by what it does itself: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS.
_OWN_SIGNALS = (4, 5, 6, 7, 8, 11, 31)


class KillReason(NamedTuple):
    """Why a process ended: `cause` for programs, `sentence` with the evidence for people."""

    cause: Cause
    sentence: str
    signal: int | None
    rss_bytes: int | None


def kill_reason(
    pid: int, exits: Sequence[Exit], kills: Sequence[Kill], *, reports_low_memory: bool | None = None
) -> KillReason | None:
    """Return why process `pid` ended, or None where nothing tells.

    The low-memory killer's own line counts most. `reports_low_memory` is what the phone's property
    `persist.sys.lmk.reportkills` says: without it a low-memory kill shows as a mere signal 9
    (ApplicationExitInfo, `isLowMemoryKillReportSupported`).
    """
    of_pid = [kill for kill in kills if kill.pid == pid]
    last = next((exit_ for exit_ in exits if exit_.pid == pid), None)
    return (
        _by_low_memory_killer(of_pid, last)
        or _by_crash(of_pid)
        or _by_exit_info(last, reports_low_memory)
        or _by_signal(of_pid, reports_low_memory)
        or _by_event(of_pid)
    )


def _by_low_memory_killer(kills: Sequence[Kill], last: Exit | None) -> KillReason | None:
    kill = next((kill for kill in reversed(kills) if kill.killer in ("lmkd", "out_of_memory")), None)
    if kill is None:
        return None
    rss = kill.rss_bytes or (last.rss_bytes if last else None)
    sizes = [
        f"{format_bytes(size)} {what}" for size, what in ((rss, "resident"), (kill.swapped_bytes, "swapped")) if size
    ]
    at = f" at {' and '.join(sizes)}" if sizes else ""
    return KillReason("low_memory", _sentence("low_memory", at, kill.why), kill.signal, rss)


def _by_crash(kills: Sequence[Kill]) -> KillReason | None:
    """A crash or ANR is written before the kill that follows from it, so the first one tells."""
    for kill in kills:
        if kill.killer == "am_crash":
            return KillReason("crash", _sentence("crash", "", kill.why), None, None)
        if kill.killer == "am_anr":
            return KillReason("anr", _sentence("anr", "", kill.why), None, None)
        if kill.killer == "fatal_signal":
            number = kill.signal or next((k.signal for k in kills if k.signal), None)
            return KillReason("native_crash", _sentence("native_crash", "", _signal_name(number)), number, None)
    return None


def _by_exit_info(last: Exit | None, reports_low_memory: bool | None) -> KillReason | None:
    if last is None or last.reason_code in (None, 0):
        return None
    if last.reason_code == 2:
        return _signalled(last.status, last.rss_bytes, reports_low_memory)
    cause = _CAUSES.get(last.reason_code or 0, "other")
    number = last.status if cause in ("native_crash", "low_memory") else None
    detail = ": ".join(part for part in (_subreason(last), last.description) if part)
    if cause == "exit" and last.status is not None:
        detail = f"exit code {last.status}"
    if cause == "other" and not detail:
        detail = last.reason or ""
    at = f" at {format_bytes(last.rss_bytes)} resident" if cause == "low_memory" and last.rss_bytes else ""
    return KillReason(cause, _sentence(cause, at, detail), number or None, last.rss_bytes)


def _subreason(last: Exit) -> str | None:
    return None if last.subreason_code in (None, 0) else (last.subreason or "").lower() or None


def _by_signal(kills: Sequence[Kill], reports_low_memory: bool | None) -> KillReason | None:
    """Zygote tells of the signal only; where the activity manager sent it, am_kill says why."""
    asked = next((kill for kill in kills if kill.killer == "am_kill"), None)
    if asked:
        return KillReason("request", f"killed by the activity manager: {asked.why or 'no reason given'}", 9, None)
    kill = next((kill for kill in kills if kill.killer == "zygote"), None)
    if kill is None:
        return None
    if kill.signal is None:
        return KillReason("exit", _sentence("exit", "", kill.why), None, None)
    return _signalled(kill.signal, None, reports_low_memory)


def _signalled(number: int | None, rss: int | None, reports_low_memory: bool | None) -> KillReason:
    if number in _OWN_SIGNALS:
        return KillReason("native_crash", _sentence("native_crash", "", _signal_name(number)), number, rss)
    said = f"killed by {_signal_name(number) or 'an unknown signal'}"
    if number == 9 and not reports_low_memory:
        at = f" at {format_bytes(rss)} resident" if rss else ""
        why = "most likely because memory ran out: this phone does not report low-memory kills as such"
        return KillReason("likely_low_memory", f"{said}{at}, {why}", number, rss)
    return KillReason("signal", said, number, rss)


def _by_event(kills: Sequence[Kill]) -> KillReason | None:
    return KillReason("other", "its process died; the phone says no more", None, None) if kills else None


def _sentence(cause: Cause, at: str, detail: str | None) -> str:
    return f"{_WORDS[cause]}{at}: {detail}" if detail else f"{_WORDS[cause]}{at}"


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return f"signal {number} ({Signals(number).name})"
    except ValueError:
        return f"signal {number}"
