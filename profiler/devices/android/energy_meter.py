"""The phone's own energy meter (ODPM): the PowerStats HAL's counters, a rail each, since boot.

Only the cumulative column counts: the HAL keeps one `delta` for all its callers, so that any other one resets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from profiler.devices.android.numerals import decimal
from profiler.devices.android.unavailable import Unavailable, refused

COMMAND = "dumpsys android.hardware.power.stats.IPowerStats/default"
COMMAND_HAL_1 = "lshal debug android.hardware.power.stats@1.0::IPowerStats/default"

_HEADING = re.compile(r"=+\s*PowerStats HAL ([\d.]+) (energy meter|rail energy data)\s*=+")
_ANY_HEADING = re.compile(r"=====.*=====")
_CHANNEL = re.compile(r"\[(.*)\]:(.*)")


class Rail(NamedTuple):
    """One counter of the meter; `subsystem` is what the phone says that it feeds."""

    name: str
    subsystem: str | None
    energy_microwattseconds: int


class EnergyMeter(NamedTuple):
    """One reading of all rails; consumers, which the phone models from rails, are not among them."""

    hal: str
    rails: tuple[Rail, ...]

    def by_rail(self) -> dict[str, int]:
        """Return µW·s since boot by rail name."""
        return {rail.name: rail.energy_microwattseconds for rail in self.rails}


def read_energy_meter(text: str) -> EnergyMeter | Unavailable:
    """Read what the PowerStats HAL (1.0 or 2.0, with `delta` or without) printed about its energy meter."""
    heading = _HEADING.search(text)
    if heading is None:
        return Unavailable(refused(text) or "the phone has no energy meter that its power stats show", text)
    rails = tuple(rail for line in _section(text[heading.end() :]) if (rail := _rail(line)) is not None)
    if not rails:
        return Unavailable("the phone's energy meter lists no rails", text)
    return EnergyMeter(heading[1], rails)


def energy_between(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int] | Unavailable:
    """Return the µW·s that each rail used between two readings; a counter that fell back makes the whole invalid."""
    fallen = sorted(name for name in before if name in after and after[name] < before[name])
    if fallen:
        return Unavailable(f"the energy meter was reset in between (rail {fallen[0]} fell back)", "")
    if set(before) != set(after):
        lost = ", ".join(sorted(set(before) ^ set(after)))
        return Unavailable(f"the energy meter listed other rails before than after: {lost}", "")
    return {name: after[name] - before[name] for name in before}


def _section(text: str) -> Iterable[str]:
    for line in text.splitlines():
        if _ANY_HEADING.search(line):
            return
        yield line


def _rail(line: str) -> Rail | None:
    """Read `name  12.34 mWs (0.10)`: a bare name, `[rail]:subsystem`, `subsystem|rail` or two columns (HAL 1)."""
    said, unit, _ = line.partition(" mWs")
    words = said.split()
    value = decimal(words[-1]) if unit and len(words) > 1 else None
    if value is None or value < 0:
        return None
    label = " ".join(words[:-1])
    channel, (left, bar, right) = _CHANNEL.fullmatch(label), label.partition("|")
    energy = round(value * 1000)
    if channel:
        return Rail(channel[1].strip(), channel[2].strip() or None, energy)
    if bar:
        return Rail(right.strip(), left.strip() or None, energy)
    return Rail(words[-2], " ".join(words[:-2]) or None, energy)
