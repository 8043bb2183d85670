"""Heat as a linear RC network: die → skin → ambient, with the battery between skin and ambient."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from tests.phones.personas import HeatFacts


class Temperatures(NamedTuple):
    """Node temperatures in °C."""

    die: float
    skin: float
    battery: float


class HeatNetwork:
    """The exact step of the network for a fixed duration and constant heat flows (zero-order hold)."""

    def __init__(self, facts: HeatFacts, step_s: float) -> None:
        self._ambient = facts.ambient_c
        self._inward = np.linalg.inv(-_conductance(facts))
        transition, response = _discretise(facts, step_s)
        self._rows = tuple((*transition[i], *response[i]) for i in range(3))

    def settled(self, die_w: float, skin_w: float, battery_w: float) -> Temperatures:
        """Return the temperatures that constant heat flows end in."""
        return Temperatures(*(self._ambient + float(row @ (die_w, skin_w, battery_w)) for row in self._inward))

    def step(self, now: Temperatures, die_w: float, skin_w: float, battery_w: float) -> Temperatures:
        """Return the temperatures one step later, with these watts flowing into the nodes meanwhile."""
        ambient = self._ambient
        die, skin, battery = now.die - ambient, now.skin - ambient, now.battery - ambient
        return Temperatures(
            *(
                ambient + a * die + b * skin + c * battery + d * die_w + e * skin_w + f * battery_w
                for a, b, c, d, e, f in self._rows
            )
        )


def _conductance(facts: HeatFacts) -> NDArray[np.float64]:
    """Return the watts (3×3, W/K) that flow into each node for temperatures relative to ambient."""
    to_skin, to_battery = 1 / facts.die_to_skin, 1 / facts.skin_to_battery
    skin_out, battery_out = 1 / facts.skin_to_ambient, 1 / facts.battery_to_ambient
    return np.array(
        [
            [-to_skin, to_skin, 0.0],
            [to_skin, -(to_skin + to_battery + skin_out), to_battery],
            [0.0, to_battery, -(to_battery + battery_out)],
        ]
    )


def _discretise(facts: HeatFacts, step_s: float) -> tuple[list[list[float]], list[list[float]]]:
    """Return (3×3 transition, 3×3 response to watts) over one step; temperatures are relative to ambient."""
    inverse = np.diag([1 / facts.die_capacity, 1 / facts.skin_capacity, 1 / facts.battery_capacity])
    # The exponential of the augmented matrix gives transition and response at once.
    joined = np.zeros((6, 6))
    joined[:3, :3] = inverse @ _conductance(facts)
    joined[:3, 3:] = inverse
    stepped = expm(joined * step_s)
    return stepped[:3, :3].tolist(), stepped[:3, 3:].tolist()
