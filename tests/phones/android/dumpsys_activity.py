"""`dumpsys activity`: why processes ended, and what is in the foreground."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from tests.phones.android.commands_answer import Answer, said
from tests.phones.memory import Process
from tests.phones.model import DeviceModel
from tests.phones.model_log import EXIT_NAMES, SUBREASON_NAMES, Exit

_LAUNCHER = "com.google.android.apps.nexuslauncher/.NexusLauncherActivity"
_EXIT_INFO_API = 30


def activity(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print one of the activity manager's sections."""
    with model.present():
        match list(words):
            case ["exit-info", *packages] if model.persona.system.api >= _EXIT_INFO_API:
                return said("\n".join(_exit_info(model, packages)))
            case ["processes" | "p", *_]:
                return said("\n".join(_processes(model)))
            case ["top" | "activities" | "a", *_]:
                return said("\n".join(_top(model)))
            case [section, *_]:
                return said(f"Bad activity command, or no activities match: {section}\nUse -h for help.")
        return said("\n".join([*_top(model), *_processes(model)]))


def foreground(model: DeviceModel) -> str:
    """Return the component in the foreground."""
    shown = [one for one in model.memory.processes.values() if one.foreground]
    return f"{shown[-1].package}/.RunnerActivity" if shown else _LAUNCHER


def _exit_info(model: DeviceModel, packages: Sequence[str]) -> list[str]:
    lines = [
        "ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)",
        f"Last Timestamp of Persistence Into Persistent Storage: {_stamp(model.wall_ns())}",
    ]
    for package in packages[:1] or model.processes.exits.packages():
        records = model.processes.exits.of(package)
        if records:
            lines += [f"  package: {package}", f"    Historical Process Exit for uid={records[0].uid}"]
            lines += [line for at, record in enumerate(records) for line in _exit(at, record)]
    return lines


def _exit(at: int, record: Exit) -> list[str]:
    uid, sizes = record.uid, f"pss={_size(record.pss_bytes)} rss={_size(record.rss_bytes)}"
    uids = f"realUid={uid} packageUid={uid} definingUid={uid} user=0"
    reason = f"reason={record.reason} ({EXIT_NAMES[record.reason]})"
    subreason = f"subreason={record.subreason} ({SUBREASON_NAMES[record.subreason]})"
    description = "null" if record.description is None else record.description
    return [
        f"        ApplicationExitInfo #{at}:",
        f"          timestamp={_stamp(record.wall_ns)} pid={record.pid} {uids}",
        f"          process={record.package} {reason} {subreason} status={record.status}",
        f"          importance={record.importance} {sizes} description={description} state=empty trace=null",
    ]


def _size(size_bytes: int) -> str:
    """Write a size as android.util.DebugUtils does: 0.00, 270MB, 2.5GB."""
    value, suffix = float(size_bytes), ""
    for larger in ("KB", "MB", "GB", "TB"):
        if value > 900:
            value, suffix = value / 1024, larger
    digits = 2 if value < 1 else 1 if value < 10 else 0
    return f"{value:.{digits}f}{suffix}"


def _processes(model: DeviceModel) -> list[str]:
    lines = ["ACTIVITY MANAGER RUNNING PROCESSES (dumpsys activity processes)", "  All known processes:"]
    for one in model.memory.processes.values():
        name = f"{one.pid}:{one.package}/{_user(one)}"
        lines += [f"  *APP* UID {one.uid} ProcessRecord{{3f0a1c2 {name}}}", f"    pid={one.pid}"]
        lines.append(
            f"    oom adj: max=1001 curRaw={one.badness} setRaw={one.badness} cur={one.badness} set={one.badness}"
        )
    lines.append(f"  mTopApp={foreground(model)}")
    return lines


def _top(model: DeviceModel) -> list[str]:
    state = "RESUMED" if model.screen.usable else "STOPPED"
    record = f"ActivityRecord{{c5d2f0 u0 {foreground(model)} t42}}"
    resumed = [f"  topResumedActivity={record}", f"  mResumedActivity: {record}"] if model.screen.usable else []
    return [
        "ACTIVITY MANAGER ACTIVITIES (dumpsys activity activities)",
        "Display #0 (activities from top to bottom):",
        f"    * Hist  #0: {record}",
        f"      state={state}",
        *resumed,
        f"  mKeyguardShowing={'true' if model.screen.locked else 'false'}",
    ]


def _user(process: Process) -> str:
    return f"u0a{process.uid - 10_000}"


def _stamp(wall_ns: int) -> str:
    return f"{datetime.fromtimestamp(wall_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S}.{wall_ns // 10**6 % 1000:03d}"
