"""Where energy went: the power stats HAL's meter, the modelled batterystats, and who used the processor."""

from __future__ import annotations

from collections.abc import Sequence

from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.android.commands_system import load_averages
from tests.phones.model import DeviceModel

METER = "android.hardware.power.stats.IPowerStats/default"
_HEADING = "============= PowerStats HAL 2.0 energy meter =============="
_FOOTER = "========== End of PowerStats HAL 2.0 energy meter =========="


def power_stats(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print the rails in mW·s since boot; `delta` adds what came since anybody's last `delta`."""
    width = 32 if model.persona.dialect.energy_meter == "hal2_subsystem" else 18
    with model.present():
        if "delta" not in words:
            rows = [f"  {name:>{width}}   {value / 1000:14.2f} mWs" for name, value in _labelled(model).items()]
            return said(
                "\n".join(["", _HEADING, f"  {'Channel':>{width}}   {'Cumulative Energy':>18}", *rows, _FOOTER])
            )
        elapsed_ms, since = model.reported.rails_since_last_dump()
        rows = [
            f"  {label:>{width}}   {value / 1000:14.2f} mWs ({since[name] / 1000:14.2f})"
            for (label, value), name in zip(_labelled(model).items(), since, strict=True)
        ]
        head = f"  {'Channel':>{width}}   {'Cumulative Energy':>18} ({'Delta   ':>14})"
        return said("\n".join(["", _HEADING, f"Elapsed time: {elapsed_ms} ms", head, *rows, _FOOTER]))


def _labelled(model: DeviceModel) -> dict[str, int]:
    """Return the rails under the names that this HAL prints: `[rail]:subsystem`, or the bare rail."""
    rails, facts = model.reported.rails() or {}, model.persona.rails
    if model.persona.dialect.energy_meter != "hal2_subsystem":
        return rails
    return {f"[{name}]:{facts[name].subsystem}": value for name, value in rails.items()}


def batterystats(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print the checkin lines that hosts read: the system's estimate from a profile, not a measurement."""
    if "--checkin" not in words and "-c" not in words:
        return said("Battery History (0% used, 0 used of 4096KB, 0 strings using 0):\n\nStatistics since last charge:")
    with model.present():
        capacity = round(model.persona.battery.design_mah)
        energy = model.physics.energy
        drained_mah = energy.total / 1e15 / 3.85 / 3.6
        up_ms = model.boot_ns() // 1_000_000
        uids = sorted({one.uid: one.package for one in model.memory.processes.values()}.items())
        share_mah = energy.work / 1e15 / 3.85 / 3.6
    lines = [f"9,0,i,vers,36,200,{model.persona.prop('ro.build.id')},{model.persona.prop('ro.build.id')}"]
    lines += [f"9,{uid},i,uid,{uid},{package}" for uid, package in uids]
    lines.append(f"9,0,l,bt,0,{up_ms},{up_ms},{up_ms},{up_ms},1700000000000,0,0,{capacity},{capacity},{capacity},0")
    lines.append(f"9,0,l,pws,{capacity},{drained_mah:.3g},{drained_mah:.3g},{drained_mah:.3g}")
    lines += [f"9,{uid},l,pwi,uid,{share_mah:.3g},0,0,0" for uid, _ in uids]
    return said("\n".join(lines))


def cpuinfo(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Print who used the processor lately, one core counted as 100 %."""
    with model.present():
        busy = {"idle": 0.0, "load": 96.0, "call": 392.0, "canary": 99.0}[model.physics.load]
        cores = sum(len(cluster.cpus) for cluster in model.persona.clusters)
        job = model.work.job
        loads = " / ".join(f"{load:.2f}" for load in load_averages(model))
        user = f"{job.pid}/{model.memory.processes[job.pid].package}" if job else ""
    rows = [f"  {_percent(busy)}% {user}: {_split(busy, 0.95)}"] if user else []
    rows.append("  3.4% 1487/system_server: 2.1% user + 1.3% kernel / faults: 412 minor")
    total = (busy + 3.4) / cores
    rows.append(f"{_percent(total)}% TOTAL: {_split(total, 0.8)}")
    return said("\n".join([f"Load: {loads}", "CPU usage from 60012ms to 12ms ago:", *rows]))


def lshal(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Debug a HIDL service, of which these phones have none with a meter."""
    name = words[1] if len(words) > 1 else ""
    return complained(f"Cannot find service {name} or it does not support lshal debug", 1)


def _split(percent: float, user_share: float) -> str:
    return f"{_percent(percent * user_share)}% user + {_percent(percent * (1 - user_share))}% kernel"


def _percent(value: float) -> str:
    """Write a share as the activity manager does: one decimal below 10."""
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.1f}"
