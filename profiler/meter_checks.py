"""What a meter must not do if it is to be believed. A reading is refused here, never corrected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]

# From a phone that does hardly more than show its screen to a laptop at full load.
_LEAST_WATTS, _MOST_WATTS = 0.05, 300.0
# A gauge corrects itself by a little now and then.
_CORRECTION = 0.02
# A battery of a phone or laptop is drained by less; a coarse counter's own step is no leap.
_MOST_MICROAMPERES = 10e6
_LEAP = 3.0
_SECONDS_AN_HOUR = 3600.0

STILL = "the power rails stood still while images were timed"


class Unknown(Exception):
    """The energy cannot be known, and why."""


def check_fall(times: Series, charge: Series) -> None:
    """Refuse a charge counter (µAh at seconds, without external power) that was set anew. Raises Unknown."""
    steps = -np.diff(charge)
    if not len(steps):
        return
    rise, fall = float(-steps[steps < 0].sum()), float(charge[0] - charge[-1])
    if rise > _CORRECTION * max(fall, 0.0):
        raise Unknown(f"the charge counter rose by {rise:.0f} µAh without external power: it was set anew meanwhile")
    leaps = (steps > _LEAP * np.median(steps)) & (steps * _SECONDS_AN_HOUR > _MOST_MICROAMPERES * np.diff(times))
    if leaps.any():
        raise Unknown(f"the charge counter fell by {steps[leaps].max():.0f} µAh at once: it was set anew meanwhile")


def check_rise(readings: Sequence[Mapping[str, int]], rails: Sequence[str]) -> None:
    """Refuse power rails that count since boot and yet fell. Raises Unknown."""
    for before, after in pairwise(readings):
        fell = [name for name in rails if after[name] < before[name]]
        if fell:
            raise Unknown(f"the power rail {fell[0]} fell, though it counts since boot: it was set anew meanwhile")
    if readings and all(readings[-1][name] == readings[0][name] for name in rails):
        raise Unknown(STILL)


def check_power(joules: float, seconds: float) -> None:
    """Refuse a battery's energy that no device draws, as where a unit is not the one that it should be.

    Raises Unknown.
    """
    watts = joules / seconds
    if not _LEAST_WATTS <= watts <= _MOST_WATTS:
        raise Unknown(
            f"the battery's gauges come to {watts:.3g} W, which no such device draws: a unit is not what it should be"
        )
