"""Doubts about the state that the device was in."""

from __future__ import annotations

from profiler.records.run import Doubt
from profiler.validity.evidence import Evidence

BUSY_SHARE_OF_CORES = 0.5
LOW_BATTERY_PERCENT = 30.0


def charging(evidence: Evidence) -> Doubt | None:
    """Charging heats a phone and may change its clocks; MLPerf Mobile's submission rules want it unplugged."""
    power = evidence.run.conditions.power
    if evidence.run.settings.untethered:  # its timed images waited until there was none
        return None
    if not evidence.run.unit.is_phone or not power.external_power or power.battery_percent is None:
        return None
    return Doubt(
        kind="charging",
        detail=f"The device was on external power with its battery at {power.battery_percent:.0f} %.",
        advice="Unplug it to see battery and heat as a user does, or compare only with runs on external power.",
    )


def power_changed(evidence: Evidence) -> Doubt | None:
    """Images on the cable and off it are made by two devices: charging heats one, and clocks may differ."""
    told = [sample.external_power for sample in evidence.environment if sample.external_power is not None]
    if not evidence.timed or len(set(told)) < 2:
        return None
    share = told.count(False) / len(told)
    return Doubt(
        kind="power_changed",
        detail=f"External power was away for {100 * share:.0f} % of the time in which images were timed.",
        advice="Leave the cable alone, or measure on the battery from the first timed image on: --untethered.",
    )


def low_battery(evidence: Evidence) -> Doubt | None:
    """Some phones lower their clocks below 30 %; AndroidX Benchmark refuses below 25 %."""
    percent = evidence.run.conditions.power.battery_percent
    if percent is None or percent >= LOW_BATTERY_PERCENT:
        return None
    return Doubt(
        kind="low_battery",
        detail=f"The battery was at {percent:.3g} %, below {LOW_BATTERY_PERCENT:.0f} %.",
        advice=f"Charge it above {LOW_BATTERY_PERCENT:.0f} %, let it cool and measure again.",
    )


def on_battery(evidence: Evidence) -> Doubt | None:
    """A computer on battery runs slower than on mains; a phone on battery is as its user has it."""
    power = evidence.run.conditions.power
    if evidence.run.unit.is_phone or power.external_power is not False:
        return None
    return Doubt(
        kind="on_battery",
        detail="This computer ran on battery.",
        advice="Plug it in and measure again, or compare only with runs on battery.",
    )


def power_save(evidence: Evidence) -> Doubt | None:
    """A device that saves power answers another question than how fast it is."""
    conditions = evidence.run.conditions
    if not conditions.power_save:
        return None
    return Doubt(
        kind="power_save",
        detail=f"Power saving was on ({conditions.power_save_source}).",
        advice="Switch it off and measure again, or compare only with runs that saved power.",
    )


def not_foreground(evidence: Evidence) -> Doubt | None:
    """A phone whose screen is off or locked runs apps at a tenth of their speed, if at all."""
    states = (("at the start", evidence.run.conditions), ("at the end", evidence.run.conditions_after))
    for when, state in states:
        if state is not None and (state.screen_on is False or state.locked):
            what = "locked" if state.locked else "off"
            return Doubt(
                kind="not_foreground",
                detail=f"The screen was {what} {when}: the system may have slowed the runner down.",
                advice="Unlock the phone, switch its screen lock off while you measure, and measure again.",
            )
    return None


def background_load(evidence: Evidence) -> Doubt | None:
    """Doubt a run that had to share: with others while it was made or, where nobody counted, right before it.

    The load average counts tasks that run or wait over about a minute (getloadavg(3)); that it may reach half of the
    cores is chosen.
    """
    found = _others_meanwhile(evidence) or _load_before(evidence)
    if found is None:
        return None
    kept = " The runner had to wait for them."
    return Doubt(
        kind="background_load",
        detail=found + (kept if "while" in found else ""),
        advice="Stop other work on the device, wait a minute and measure again.",
    )


def _others_meanwhile(evidence: Evidence) -> str | None:
    if not evidence.is_shared:
        return None
    taken, cores = evidence.cores_taken_by_others, evidence.run.unit.logical_cores
    return f"Other processes used {taken:.1f} of {cores} cores while the images were made."


def _load_before(evidence: Evidence) -> str | None:
    load, cores = evidence.run.conditions.load_average_1m, evidence.run.unit.logical_cores
    if evidence.cores_taken_by_others is not None:
        return None  # counted while it mattered, which is better than before
    if load is None or not cores or load <= BUSY_SHARE_OF_CORES * cores:
        return None
    return f"The load average was {load:.2f} on {cores} cores before the run began."


def oversubscribed(evidence: Evidence) -> Doubt | None:
    """Threads that wait for each other's core measure the scheduler."""
    threads, cores = evidence.run.settings.threads, evidence.run.unit.logical_cores
    if threads is None or cores is None or threads <= cores:
        return None
    return Doubt(
        kind="oversubscribed",
        detail=f"The runtime was given {threads} threads on {cores} usable cores.",
        advice=f"Use --threads {cores} or fewer, or leave it to the runtime.",
    )
