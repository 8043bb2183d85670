"""`dumpsys meminfo`: a process's memory in the shapes of Android 10 and of Android 11 and later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.phones.android.commands_answer import Answer, said
from tests.phones.memory import Process
from tests.phones.model import DeviceModel

# Shared pages count less than once in PSS; the runner's own are most of what it holds.
_PSS_SHARE = 0.94
_HEAP_SHARE = 0.18


class Row(NamedTuple):
    """One kind of memory in kB; resident, of it proportional, dirty, clean, and swapped."""

    name: str
    pss: int
    dirty: int
    clean: int
    swap: int
    rss: int


def meminfo(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print the memory of the processes that a pid or a package names, or of the whole phone."""
    brief = "-s" in words
    names = [word for word in words if not word.startswith("-")]
    with model.present():
        found = [one for one in model.memory.processes.values() if not names or _named(one, names[0])]
        if not names:
            return said(_whole_phone(model, found))
        if not found:
            return said(f"No process found for: {names[0]}")
        head = _head(model)
        return said("\n".join([*head, *(line for one in found for line in _of(model, one, brief=brief))]))


def _named(process: Process, name: str) -> bool:
    return name == process.package or name == str(process.pid)


def _head(model: DeviceModel) -> list[str]:
    up_ms = model.boot_ns() // 1_000_000
    return ["Applications Memory Usage (in Kilobytes):", f"Uptime: {up_ms} Realtime: {up_ms}", ""]


def _of(model: DeviceModel, process: Process, *, brief: bool) -> list[str]:
    rows = _rows(process)
    new = model.persona.dialect.meminfo == "api30"
    lines = [f"** MEMINFO in pid {process.pid} [{process.package}] **"]
    if not brief:
        lines += [*_table(rows, new=new), " "]
    return [*lines, *_summary(rows, new=new), " "]


def _rows(process: Process) -> list[Row]:
    """Split what the ledger holds over kinds: heaps are anonymous, mapped weights are `Other mmap`."""
    anonymous, file, swap = (
        size // 1024 for size in (process.anonymous_bytes, process.file_bytes, process.swapped_bytes)
    )
    java = min(18_000, round(anonymous * _HEAP_SHARE))
    libraries = min(60_000, file // 2)
    return [
        Row("Native Heap", anonymous - java, anonymous - java, 0, swap, anonymous - java),
        Row("Dalvik Heap", java, java, 0, 0, java),
        Row(".so mmap", round(libraries * _PSS_SHARE), 0, round(libraries * _PSS_SHARE), 0, libraries),
        Row("Other mmap", file - libraries, 0, file - libraries, 0, file - libraries),
    ]


def _total(rows: Iterable[Row]) -> Row:
    columns = list(zip(*(row[1:] for row in rows), strict=True))
    pss, dirty, clean, swap, rss = (sum(column) for column in columns)
    return Row("TOTAL", pss + swap, dirty, clean, swap, rss)


def _table(rows: list[Row], *, new: bool) -> list[str]:
    if new:
        lines = [
            "                   Pss  Private  Private  SwapPss      Rss     Heap     Heap     Heap",
            "                 Total    Dirty    Clean    Dirty    Total     Size    Alloc     Free",
            "                ------   ------   ------   ------   ------   ------   ------   ------",
        ]
    else:
        lines = [
            "                   Pss  Private  Private  SwapPss     Heap     Heap     Heap",
            "                 Total    Dirty    Clean    Dirty     Size    Alloc     Free",
            "                ------   ------   ------   ------   ------   ------   ------",
        ]
    return lines + [_line(row, new=new) for row in [*rows, _total(rows)]]


def _line(row: Row, *, new: bool) -> str:
    cells = [row.pss, row.dirty, row.clean, row.swap, *([row.rss] if new else [])]
    if row.name in ("Native Heap", "Dalvik Heap", "TOTAL"):
        cells += [row.dirty + 4096, row.dirty, 4096]
    return f"{row.name:>13} " + "".join(f"{cell:>8} " for cell in cells).rstrip()


def _summary(rows: list[Row], *, new: bool) -> list[str]:
    native, java, code, other = rows
    total = _total(rows)
    named = [
        ("Java Heap", java.pss, java.rss),
        ("Native Heap", native.pss, native.rss),
        ("Code", code.pss, code.rss),
        ("Stack", 0, 0),
        ("Graphics", 0, 0),
        ("Private Other", other.pss, None),
        ("System", native.swap, None),
    ]
    if not new:
        lines = [" App Summary", "                       Pss(KB)", "                        ------"]
        lines += [f"{name + ':':>21} {pss:>8}" for name, pss, _ in named]
        return [*lines, "", f"               TOTAL: {total.pss:>8}       TOTAL SWAP PSS: {total.swap:>8}"]
    lines = [
        " App Summary",
        "                       Pss(KB)                        Rss(KB)",
        "                        ------                         ------",
    ]
    for name, pss, rss in named:
        lines.append(f"{name + ':':>21} {pss:>8}" + ("" if rss is None else f"{rss:>31}"))
    lines.append(f"{'Unknown:':>21} {'':>8}{other.rss:>31}")
    end = f"           TOTAL PSS: {total.pss:>8}            TOTAL RSS: {total.rss:>8}"
    return [*lines, "", f"{end}       TOTAL SWAP PSS: {total.swap:>8}"]


def _whole_phone(model: DeviceModel, processes: Iterable[Process]) -> str:
    memory = model.memory
    lines = [*_head(model), "Total RSS by process:"]
    lines += [f"  {one.resident_bytes // 1024:>9,}K: {one.package} (pid {one.pid} / activities)" for one in processes]
    free, used = max(0, memory.available_bytes()) // 1024, memory.total_bytes // 1024
    swap = memory.swap_total_bytes // 1024
    lines += [
        "",
        f"Total RAM: {used:>9,}K (status normal)",
        f" Free RAM: {free:>9,}K",
        f" Used RAM: {used - free:>9,}K",
    ]
    return "\n".join(
        [*lines, f"     ZRAM: {memory.swapped_bytes // 1024 // 3:>9,}K physical used (total swap {swap:,}K)"]
    )
