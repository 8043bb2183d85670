"""Properties, clocks, processes and space: getprop, setprop, date, uptime, pidof, ps, df."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.model import DeviceModel


def properties(model: DeviceModel) -> dict[str, str]:
    """Return all system properties, those that follow from the state included."""
    system = model.persona.system
    return dict(sorted({**system.props, **_derived(model)}.items())) | {"ro.serialno": system.serial}


def _derived(model: DeviceModel) -> dict[str, str]:
    system = model.persona.system
    return {
        "ro.build.version.sdk": str(system.api),
        "ro.boot.serialno": system.serial,
        "ro.profiler.virtual": "1",
        "sys.boot_completed": "1",
        "dev.bootcomplete": "1",
        "init.svc.adbd": "running",
        "ro.boottime.init": "1234567890",
        "ro.adb.secure": "1",
        "persist.sys.lmk.reportkills": "true" if model.persona.memory.low_memory_is_reported else "false",
        "ro.debuggable": "0",
        "ro.secure": "1",
        "sys.usb.state": "adb" if model.physics.plug == "usb" else "",
    }


def getprop(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print one property (an empty line where it is not set, or the given default) or all of them."""
    with model.present():
        found = properties(model)
    if words:
        default = words[1] if len(words) > 1 else ""
        return said((found.get(words[0]) or default) + "\n")
    return said("\n".join(f"[{name}]: [{value}]" for name, value in found.items()))


def setprop(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Refuse, as a phone does to the shell user for all but a few properties."""
    if len(words) != 2:
        return complained("usage: setprop NAME VALUE", 1)
    return complained(f"Failed to set property '{words[0]}' to '{words[1]}'.\nSee dmesg for error reason.", 1)


def date(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print the phone's time of day; `+FORMAT` knows %s, %N and strftime's letters."""
    with model.present():
        wall_ns = model.wall_ns()
    words = [word for word in words if word != "-u"]
    if words and not words[0].startswith("+"):
        return complained("date: cannot set date: Operation not permitted", 1)
    form = words[0][1:] if words else "%a %b %e %H:%M:%S UTC %Y"
    form = form.replace("%N", f"{wall_ns % 10**9:09d}").replace("%s", str(wall_ns // 10**9))
    form = form.replace("%z", model.persona.system.utc_offset)
    return said(_time_of_day(wall_ns).strftime(form))


def uptime(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print how long the phone has been up."""
    with model.present():
        boot_s, wall_ns = model.boot_ns() // 10**9, model.wall_ns()
    days, left = divmod(boot_s, 86_400)
    hours, minutes = divmod(left // 60, 60)
    up = f"{days} days, " if days else ""
    load = ", ".join(f"{load:.2f}" for load in load_averages(model))
    return said(f" {_time_of_day(wall_ns):%H:%M:%S} up {up}{hours:2d}:{minutes:02d},  0 users,  load average: {load}")


def load_averages(model: DeviceModel) -> tuple[float, float, float]:
    """Return a load that fits what the phone does now; there is no history behind it."""
    busy = 0.35 if model.physics.load == "idle" else 4.1
    return (busy, busy, busy)


def pidof(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print the processes of a name, exit code 1 where there is none."""
    names = [word for word in words if not word.startswith("-")]
    pids = [str(pid) for pid, package in apps.running().items() if package in names]
    return said(" ".join(pids)) if pids else Answer(b"", b"", 1)


def ps(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print the app processes and a few of the system, in toybox's default columns."""
    rows = [("root", 1, 0, 10_780, 5_420, "init"), ("system", 1487, 1022, 21_034_112, 402_332, "system_server")]
    with model.present():
        for process in model.memory.processes.values():
            user, rss = f"u0_a{process.uid - 10_000}", process.resident_bytes // 1024
            rows.append((user, process.pid, 1022, rss + 14_000_000, rss, process.package))
    lines = ["USER           PID  PPID        VSZ    RSS WCHAN            ADDR S NAME"]
    lines += [f"{u:<12} {p:>5} {pp:>5} {v:>10} {r:>6} 0                   0 S {n}" for u, p, pp, v, r, n in rows]
    return said("\n".join(lines))


def df(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Print the data partition, for any path below /data or /sdcard."""
    paths = [word for word in words if not word.startswith("-")]
    for path in paths:
        if not re.match(r"/(data|sdcard|storage|mnt)\b", path):
            return complained(f"df: {path}: No such file or directory", 1)
    with model.present():
        total, used, free = (
            n // 1024 for n in (model.storage.total_bytes, model.storage.used_bytes, model.storage.free_bytes)
        )
    share = -(-100 * used // total)
    if any(word.startswith("-") and "h" in word for word in words):
        sizes = [f"{size / 1024**2:.0f}G" for size in (total, used, free)]
        return said(
            f"Filesystem      Size Used Avail Use% Mounted on\n/dev/block/dm-51 {' '.join(sizes)} {share}% /data"
        )
    return said(
        "Filesystem       1K-blocks     Used Available Use% Mounted on\n"
        f"/dev/block/dm-51 {total:9d} {used:8d} {free:9d} {share:3d}% /data"
    )


def _time_of_day(wall_ns: int) -> datetime:
    return datetime.fromtimestamp(wall_ns // 10**9, UTC)
