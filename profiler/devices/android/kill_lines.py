"""What killers and crashes leave in a phone's logs about the processes that they ended."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from profiler.devices.android.numerals import integer

Killer = Literal["lmkd", "zygote", "am_kill", "am_proc_died", "am_crash", "am_anr", "fatal_signal", "out_of_memory"]


class Kill(NamedTuple):
    """One log line that tells of a process's end, with what it adds; `line` is the line itself."""

    killer: Killer
    pid: int
    process: str | None
    signal: int | None
    rss_bytes: int | None
    swapped_bytes: int | None
    why: str | None
    line: str


def read_kill_lines(text: str) -> tuple[Kill, ...]:
    """Return what the log's lines tell about processes' ends, in order; other lines are passed over.

    Reads logcat in any format, the event log and the kernel log.
    """
    return tuple(kill for line in text.splitlines() if (kill := _kill(line.strip())) is not None)


_LMKD = re.compile(r"(?:lowmemorykiller|lmkd|lowmem_\w+)\b.*?Kill(?:ing)? '([^']*)' \((\d+)\)(.*)")
_RSS = re.compile(r"to free (\d+)\s*kB")
_SWAP = re.compile(r"(\d+)\s*kB swap")
_WHY = re.compile(r"(?:reason: |because )(.*)")
_ZYGOTE = re.compile(r"Process (\d+) exited (?:due to signal (\d+)(?: \(([^)]*)\))?|cleanly \((-?\d+)\))")
_OOM_KILLER = re.compile(r"Out of memory: Kill(?:ed)? process (\d+) \(([^)]*)\)")
_FATAL = re.compile(r"Fatal signal (\d+) \((\w+)\).*?\bpid (\d+)(?: \(([^)]*)\))?")
_TOMBSTONE = re.compile(r"\bpid: (\d+), tid: \d+, name: .*?>>> (.*?) <<<")
_EVENT = re.compile(r"\b(am_kill|am_proc_died|am_crash|am_anr)\s*:?\s*\[(.*)\]?")


def _kill(line: str) -> Kill | None:
    for read in (_by_lmkd, _by_zygote, _by_kernel, _by_signal, _by_event):
        kill = read(line)
        if kill is not None:
            return kill
    return None


def _by_lmkd(line: str) -> Kill | None:
    """`lowmemorykiller: Kill 'x' (pid), uid …, oom_score_adj … to free NkB rss, MkB swap; reason: …`, and older."""
    match = _LMKD.search(line)
    if not match:
        return None
    pid, rss, swap, why = integer(match[2]), _RSS.search(line), _SWAP.search(line), _WHY.search(match[3])
    reason = why[1].strip() if why else None
    return None if pid is None else Kill("lmkd", pid, match[1], 9, _kilobytes(rss), _kilobytes(swap), reason, line)


def _kilobytes(match: re.Match[str] | None) -> int | None:
    value = integer(match[1]) if match else None
    return None if value is None else value * 1024


def _by_zygote(line: str) -> Kill | None:
    match = _ZYGOTE.search(line)
    pid = integer(match[1]) if match else None
    if match is None or pid is None:
        return None
    code = match[4]
    return Kill("zygote", pid, None, integer(match[2]), None, None, f"exit code {code}" if code else match[3], line)


def _by_kernel(line: str) -> Kill | None:
    match = _OOM_KILLER.search(line)
    pid = integer(match[1]) if match else None
    return None if match is None or pid is None else Kill("out_of_memory", pid, match[2], 9, None, None, None, line)


def _by_signal(line: str) -> Kill | None:
    """`Fatal signal 11 (SIGSEGV), code 1 … in tid 5 (x), pid 4 (y)`, and a tombstone's head."""
    match = _FATAL.search(line)
    if match and (pid := integer(match[3])) is not None:
        return Kill("fatal_signal", pid, match[4], integer(match[1]), None, None, match[2], line)
    head = _TOMBSTONE.search(line)
    if head and (pid := integer(head[1])) is not None:
        return Kill("fatal_signal", pid, head[2], None, None, None, None, line)
    return None


def _by_event(line: str) -> Kill | None:
    """Event log lists: am_kill and am_proc_died are user,pid,process,…; am_crash pid,user,…; am_anr user,pid,…."""
    match = _EVENT.search(line)
    if not match:
        return None
    items = match[2].rstrip("]").split(",")
    at = 0 if match[1] == "am_crash" else 1
    pid = integer(items[at]) if len(items) > at else None
    if pid is None or len(items) < 3:
        return None
    killer: Killer = next(k for k in _EVENT_KILLERS if k == match[1])
    return Kill(killer, pid, items[2], None, None, None, _event_reason(killer, items), line)


_EVENT_KILLERS: tuple[Killer, ...] = ("am_kill", "am_proc_died", "am_crash", "am_anr")


def _event_reason(killer: Killer, items: list[str]) -> str | None:
    """Return the reason's text: it may hold commas itself, and a newer am_kill has a number behind it."""
    if killer == "am_proc_died":
        return None
    rest = items[4:]
    if killer == "am_kill" and len(rest) > 1 and integer(rest[-1]) is not None:
        rest = rest[:-1]
    if killer == "am_crash" and len(rest) > 1:
        return f"{rest[0]}: {','.join(rest[1:])}"
    return ",".join(rest).strip() or None
