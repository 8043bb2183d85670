"""A lithium cell behind a charger: charge, open-circuit voltage, internal resistance."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Literal, NamedTuple

from tests.phones.personas import BatteryFacts

Plug = Literal["none", "ac", "usb", "wireless"]

# BatteryManager.BATTERY_PLUGGED_*
PLUGGED_NUMBER: dict[Plug, int] = {"none": 0, "ac": 1, "usb": 2, "wireless": 4}

STATUS_CHARGING, STATUS_DISCHARGING, STATUS_NOT_CHARGING, STATUS_FULL = 2, 3, 4, 5

# Open-circuit voltage over state of charge of a LiCoO2 cell, as a share of the way from empty to full.
_CHARGE_POINTS = (0.0, 0.05, 0.10, 0.20, 0.40, 0.60, 0.80, 0.90, 1.0)
_VOLTAGE_POINTS = (0.0, 0.20, 0.30, 0.38, 0.46, 0.57, 0.75, 0.86, 1.0)

_FULL_SHARE = 0.998


class Flow(NamedTuple):
    """What the cell does for a moment: current out of it (negative: charging), terminal voltage, heat inside."""

    current_a: float
    voltage_v: float
    heat_w: float


class Cell:
    """Laws of one cell and its charger; holds no state, charge is passed in as coulombs."""

    def __init__(self, facts: BatteryFacts) -> None:
        self._facts = facts
        self.capacity_c = facts.capacity_mah * 3.6

    def share(self, charge_c: float) -> float:
        """Return the state of charge, 0 to 1."""
        return min(1.0, max(0.0, charge_c / self.capacity_c))

    def open_voltage_v(self, charge_c: float) -> float:
        """Return the voltage that the cell has without a current."""
        share = self.share(charge_c)
        after = min(len(_CHARGE_POINTS) - 1, bisect_right(_CHARGE_POINTS, share))
        low, high = _CHARGE_POINTS[after - 1], _CHARGE_POINTS[after]
        along = (share - low) / (high - low)
        height = _VOLTAGE_POINTS[after - 1] + along * (_VOLTAGE_POINTS[after] - _VOLTAGE_POINTS[after - 1])
        return (self._facts.empty_mv + height * (self._facts.full_mv - self._facts.empty_mv)) / 1000

    def flow(self, system_w: float, charge_c: float, plug: Plug) -> Flow:
        """Return what the cell does while the phone draws `system_w` at its terminals or from the charger."""
        spare_w = self._facts.charger_w[plug] - system_w if plug != "none" else -system_w
        if spare_w > 0:
            return self._charging(spare_w, charge_c)
        return self._draining(-spare_w, charge_c)

    def _draining(self, power_w: float, charge_c: float) -> Flow:
        """Solve I × (OCV − I × R) = power for the smaller current."""
        open_v, ohm = self.open_voltage_v(charge_c), self._facts.resistance_ohm
        root = math.sqrt(max(0.0, open_v * open_v - 4 * ohm * power_w))
        current = (open_v - root) / (2 * ohm)
        return Flow(current, open_v - current * ohm, current * current * ohm)

    def _charging(self, spare_w: float, charge_c: float) -> Flow:
        """Charge at constant current until the terminals reach the full voltage, then taper."""
        open_v, ohm = self.open_voltage_v(charge_c), self._facts.resistance_ohm
        if self.share(charge_c) >= _FULL_SHARE:
            return Flow(0.0, open_v, 0.0)
        usable_w = spare_w * self._facts.charge_efficiency
        by_power = (math.sqrt(open_v * open_v + 4 * ohm * usable_w) - open_v) / (2 * ohm)
        taper = max(0.0, (self._facts.full_mv / 1000 - open_v) / ohm)
        current = min(by_power, self._facts.charge_limit_ma / 1000, taper)
        terminal_v = open_v + current * ohm
        lost_w = current * terminal_v * (1 / self._facts.charge_efficiency - 1)
        return Flow(-current, terminal_v, current * current * ohm + lost_w)

    def status(self, flow: Flow, charge_c: float, plug: Plug) -> int:
        """Return BatteryManager's status number."""
        if plug == "none":
            return STATUS_DISCHARGING
        if self.share(charge_c) >= _FULL_SHARE:
            return STATUS_FULL
        return STATUS_CHARGING if flow.current_a < 0 else STATUS_NOT_CHARGING
