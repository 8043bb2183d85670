"""What a phone says about memory: `dumpsys meminfo`, `/proc/<pid>/status` and `/proc/meminfo`.

`dumpsys meminfo` walks the target's page tables and stalls it for up to two seconds: never inside a timed window.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from profiler.devices.android.numerals import fields_of, integer
from profiler.devices.android.unavailable import Unavailable, refused

_KIB = 1024
_GONE = re.compile(r"No process found for:?\s*(.*)")
_HEAD = re.compile(r"\*\* MEMINFO in pid (\d+) \[(.*?)\] \*\*")
# "TOTAL PSS:  1  TOTAL RSS:  2  TOTAL SWAP PSS: 3" from Android 11 on; "TOTAL:  1  TOTAL SWAP (KB): 3" before.
_TOTALS = re.compile(r"TOTAL\s*(PSS|RSS|SWAP PSS|SWAP \(KB\))?\s*:\s*(\d+)")
_SUMMARY_NAMES = ("Java Heap", "Native Heap", "Code", "Stack", "Graphics", "Private Other", "System", "Unknown")


class ProcessMemory(NamedTuple):
    """`dumpsys meminfo` of one process, in bytes; an empty cell is None.

    PSS may exceed RSS: graphics memory counts in one and not always in the other. `graphics_bytes` is None where the
    phone lists none or 0: without a memtrack HAL it prints 0 for whatever is there.
    `summary_bytes` holds the App Summary's PSS column; `table_pss_bytes` the rows of the full table (`EGL mtrack` …).
    """

    pid: int | None
    process: str | None
    pss_bytes: int | None
    rss_bytes: int | None
    swap_pss_bytes: int | None
    graphics_bytes: int | None
    summary_bytes: dict[str, int | None]
    summary_rss_bytes: dict[str, int | None]
    table_pss_bytes: dict[str, int]


class ProcessGone(NamedTuple):
    """There is no such process: not a reading of 0."""

    name: str


class ProcessStatus(NamedTuple):
    """`/proc/<pid>/status`, in bytes; `peak_resident_bytes` is the kernel's own high-water mark (VmHWM)."""

    name: str | None
    pid: int | None
    peak_resident_bytes: int | None
    resident_bytes: int | None
    swapped_bytes: int | None
    anonymous_bytes: int | None
    file_backed_bytes: int | None
    shared_bytes: int | None
    threads: int | None


class SystemMemory(NamedTuple):
    """`/proc/meminfo`, in bytes."""

    total_bytes: int
    available_bytes: int | None
    free_bytes: int | None
    swap_total_bytes: int | None
    swap_free_bytes: int | None


def read_meminfo(text: str) -> ProcessMemory | ProcessGone | Unavailable:
    """Read what `dumpsys meminfo [-s] <pid|package>` printed, on Android 6 to 16."""
    lines = text.splitlines()
    gone = next((match for line in lines if (match := _GONE.match(line.strip()))), None)
    if gone:
        return ProcessGone(gone[1].strip())
    head = _HEAD.search(text)
    table, summary = _split_at_summary(lines)
    table_pss = _table_pss(table)
    totals = _totals(summary) or _totals(table)
    if not totals and "TOTAL" not in table_pss:
        return Unavailable(refused(text) or "no TOTAL line in what dumpsys meminfo printed", text)
    pss, rss = _summary_columns(summary)
    return ProcessMemory(
        pid=integer(head[1]) if head else None,
        process=head[2] if head else None,
        pss_bytes=totals.get("PSS", table_pss.get("TOTAL")),
        rss_bytes=totals.get("RSS", _table_rss(table)),
        swap_pss_bytes=totals.get("SWAP"),
        graphics_bytes=_graphics(pss, table_pss),
        summary_bytes=pss,
        summary_rss_bytes=rss,
        table_pss_bytes=table_pss,
    )


def read_process_status(text: str) -> ProcessStatus | ProcessGone | Unavailable:
    """Read `/proc/<pid>/status`; a kernel thread and a zombie have no memory lines, and so no reading."""
    fields = fields_of(text.splitlines())
    refusal = refused(text)
    if refusal and "No such file" in refusal:
        return ProcessGone(refusal)
    if "VmRSS" not in fields and "VmHWM" not in fields:
        return Unavailable(refusal or "no VmRSS or VmHWM line", text)
    return ProcessStatus(
        name=fields.get("Name"),
        pid=integer(fields.get("Pid")),
        peak_resident_bytes=_kib(fields, "VmHWM"),
        resident_bytes=_kib(fields, "VmRSS"),
        swapped_bytes=_kib(fields, "VmSwap"),
        anonymous_bytes=_kib(fields, "RssAnon"),
        file_backed_bytes=_kib(fields, "RssFile"),
        shared_bytes=_kib(fields, "RssShmem"),
        threads=integer(fields.get("Threads")),
    )


def read_system_memory(text: str) -> SystemMemory | Unavailable:
    """Read `/proc/meminfo`."""
    fields = fields_of(text.splitlines())
    total = _kib(fields, "MemTotal")
    if not total:
        return Unavailable(refused(text) or "no MemTotal line", text)
    return SystemMemory(
        total_bytes=total,
        available_bytes=_kib(fields, "MemAvailable"),
        free_bytes=_kib(fields, "MemFree"),
        swap_total_bytes=_kib(fields, "SwapTotal"),
        swap_free_bytes=_kib(fields, "SwapFree"),
    )


def _kib(fields: Mapping[str, str], name: str) -> int | None:
    """Return the bytes of a `name: N kB` line; anything but kB is no reading."""
    amount, _, unit = fields.get(name, "").partition(" ")
    value = integer(amount)
    return None if value is None or value < 0 or unit.strip().lower() != "kb" else value * _KIB


def _split_at_summary(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the full table and the App Summary; `-s` prints the latter only, without its heading on old versions."""
    start = next((i for i, line in enumerate(lines) if line.strip() == "App Summary"), None)
    if start is None:
        return lines, lines
    end = next((i for i in range(start + 1, len(lines)) if lines[i].strip() == "Objects"), len(lines))
    return lines[:start], lines[start:end]


def _totals(lines: Iterable[str]) -> dict[str, int]:
    """Return bytes by PSS, RSS and SWAP from the line that names its totals."""
    found: dict[str, int] = {}
    for line in lines:
        if line.strip().startswith("TOTAL"):
            for name, amount in _TOTALS.findall(line):
                value = integer(amount)
                if value is not None:
                    found.setdefault((name or "PSS").split()[0], value * _KIB)
    return found


def _table_pss(lines: Iterable[str]) -> dict[str, int]:
    """Return the first number, the PSS, of each row of the full table; its TOTAL has no colon."""
    rows: dict[str, int] = {}
    for name, numbers in _rows(lines):
        rows.setdefault(name, numbers[0] * _KIB)
    return rows


def _table_rss(lines: Sequence[str]) -> int | None:
    """Return the table's total below its `Rss` heading, which there is from Android 11 on."""
    heading = next((line.split() for line in lines if line.split()[:1] == ["Pss"]), [])
    total = next((numbers for name, numbers in _rows(lines) if name == "TOTAL"), [])
    at = heading.index("Rss") if "Rss" in heading else len(total)
    return total[at] * _KIB if at < len(total) else None


def _rows(lines: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield the rows of the full table: a name of some words, then nothing but numbers."""
    for line in lines:
        words = line.split()
        first = next((i for i, word in enumerate(words) if integer(word) is not None), 0)
        numbers = [integer(word) for word in words[first:]]
        whole = [number for number in numbers if number is not None and number >= 0]
        if first and len(whole) == len(numbers):
            yield " ".join(words[:first]), whole


def _summary_columns(lines: Sequence[str]) -> tuple[dict[str, int | None], dict[str, int | None]]:
    """Return the summary's PSS and RSS columns; which column a lone number is in is told by where it stands."""
    rss_from = next((line.find("Rss(KB)") for line in lines if "Pss(KB)" in line and "Rss(KB)" in line), None)
    pss: dict[str, int | None] = {}
    rss: dict[str, int | None] = {}
    for line in lines:
        name, found, rest = line.partition(":")
        if found and name.strip() in _SUMMARY_NAMES:
            pss[name.strip()], rss[name.strip()] = _cells(rest, len(name) + 1, rss_from)
    return pss, rss


def _cells(rest: str, offset: int, rss_from: int | None) -> tuple[int | None, int | None]:
    numbers = [(offset + match.end(), integer(match[0])) for match in re.finditer(r"\d+", rest)]
    values = [None if value is None else value * _KIB for _, value in numbers]
    if len(values) >= 2:
        return values[0], values[1]
    if not values:
        return None, None
    # Numbers are right-aligned below their heading, so a lone one ends where its heading stands.
    in_rss = rss_from is not None and numbers[0][0] > rss_from
    return (None, values[0]) if in_rss else (values[0], None)


def _graphics(summary: Mapping[str, int | None], table: Mapping[str, int]) -> int | None:
    """Return the summary's graphics, or the sum of the table's rows; 0 is what phones print that cannot tell."""
    listed = [table[name] for name in ("Gfx dev", "EGL mtrack", "GL mtrack") if name in table]
    return summary.get("Graphics") or sum(listed) or None
