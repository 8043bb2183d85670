"""What benchmarks say at the end: a target, what was measured, and whether the one holds the other."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import msgspec
from rich.console import Console

from profiler.records.record import Record
from profiler.stats import Interval

Outcome = Literal["met", "missed", "unresolved"]
_BUSY_SHARE = 0.25
_STYLES: dict[Outcome, str] = {"met": "green", "missed": "red", "unresolved": "yellow"}


class Verdict(Record):
    """One target, as an upper limit; a measurement that cannot tell is unresolved and never passes."""

    what: str
    unit: str
    measured: float | None
    limit: float
    outcome: Outcome


class Load(Record):
    """The machine's load average over one minute, before and after."""

    before: float
    after: float
    processors: int

    @property
    def high(self) -> bool:
        """Tell whether others used the machine when the benchmark began."""
        return self.before > _BUSY_SHARE * self.processors


def judge(what: str, unit: str, measured: float | None, limit: float, *, resolved: bool = True) -> Verdict:
    """Hold a measurement against its limit."""
    outcome: Outcome = "unresolved"
    if resolved and measured is not None:
        outcome = "met" if measured <= limit else "missed"
    return Verdict(what=what, unit=unit, measured=measured, limit=limit, outcome=outcome)


def judge_interval(what: str, unit: str, interval: Interval | None, limit: float, *, resolved: bool) -> Verdict:
    """Hold a 95 % interval against a limit; one that has the limit inside, or no interval, cannot tell."""
    low, high = interval or (None, None)
    verdict = judge(what, unit, high, limit, resolved=resolved)
    if verdict.outcome == "missed" and low is not None and low <= limit:
        return msgspec.structs.replace(verdict, outcome="unresolved")
    return verdict


def load_now() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def load_since(before: float) -> Load:
    """Return the load before and now."""
    return Load(before=before, after=load_now(), processors=os.cpu_count() or 1)


def print_verdicts(verdicts: Sequence[Verdict], load: Load, console: Console) -> None:
    """Print a line each, and how busy the machine was."""
    for verdict in verdicts:
        measured = "not measured" if verdict.measured is None else f"{verdict.measured:.4g} {verdict.unit}".strip()
        limit = f"{verdict.limit:g} {verdict.unit}".strip()
        style = _STYLES[verdict.outcome]
        console.print(
            f"[{style}]{verdict.outcome:<10}[/] {verdict.what}: {measured} (target ≤ {limit})", soft_wrap=True
        )
    console.print(f"load average {load.before:.2f} before, {load.after:.2f} after, {load.processors} processors")
    if load.high:
        console.print("[yellow]warning: the machine was busy before the benchmark began; times are not its own[/]")


def exit_code(verdicts: Sequence[Verdict]) -> int:
    """Return 0 where every target is met."""
    return 0 if all(verdict.outcome == "met" for verdict in verdicts) else 1
