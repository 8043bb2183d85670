"""The physics of one phone on a fixed grid of ticks: power, clocks, heat, charge.

State changes only at ticks and power is integrated in whole femtojoules, so the result does not depend on how a
stretch of time is cut into pieces: looking ahead on a copy and integrating later agree exactly.
"""

from __future__ import annotations

import copy
from typing import Literal, NamedTuple

from tests.phones.battery import Cell, Flow, Plug
from tests.phones.heat import HeatNetwork, Temperatures
from tests.phones.personas import Persona

TICK_NS = 50_000_000
TICK_S = TICK_NS / 1e9
FULL_SPEED = 1_000_000

Load = Literal["idle", "load", "call", "canary"]

# How many cores each keeps busy, the system's own bustle aside.
BUSY_CORES: dict[Load, int] = {"idle": 0, "load": 1, "call": 4, "canary": 1}


class Power(NamedTuple):
    """What is drawn now, in whole microwatts."""

    work: int
    screen: int
    base: int


class Energy(NamedTuple):
    """What has been drawn since the model began, in femtojoules."""

    work: int
    screen: int
    base: int

    @property
    def total(self) -> int:
        """Return the sum."""
        return self.work + self.screen + self.base


class Physics:
    """State and laws; `tick` must be called whenever `now_ns` reaches a multiple of TICK_NS."""

    def __init__(self, persona: Persona, now_ns: int) -> None:
        self._persona = persona
        self._network = HeatNetwork(persona.heat, TICK_S)
        self._poll_ticks = max(1, round(persona.throttling.poll_s / TICK_S))
        self.cell = Cell(persona.battery)
        self.now_ns = now_ns
        self.charge_c = self.cell.capacity_c * persona.battery.start_percent / 100
        self.plug: Plug = "usb"
        self.load: Load = "idle"
        self.screen_share = 0.0
        self.radio = True
        self.power_save = False
        self.fixed_performance = False
        self.background = False
        self.throttle_level = 0
        self.forced: tuple[tuple[int, float], ...] = ()
        self.energy = Energy(0, 0, 0)
        self.busy_ns = 0
        self._tick_energy = self.energy
        self._powers: dict[object, Power] = {}
        base_w = self.power().base / 1e6
        self.flow: Flow = self.cell.flow(base_w, self.charge_c, self.plug)
        # It has lain idle on a table for long.
        self.temperatures = self._network.settled(0.0, base_w, 0.0)

    def copy(self) -> Physics:
        """Return a twin to look ahead with; all state is immutable or a number."""
        return copy.copy(self)

    def throttle_clock(self) -> float:
        """Return the clock that heat and tests leave, 1.0 for the maximum."""
        steps = self._persona.throttling.steps
        own = steps[self.throttle_level - 1].clock if self.throttle_level else 1.0
        return min(own, self._forced_clock())

    def clock(self) -> float:
        """Return the clock that cores run at under load, 1.0 for the maximum."""
        facts = self._persona.power
        saving = facts.power_save_clock if self.power_save else 1.0
        fixed = facts.fixed_performance_clock if self.fixed_performance else None
        return min(self.throttle_clock(), saving, 1.0 if fixed is None else fixed)

    def speed(self) -> int:
        """Return how fast processor-bound work proceeds, FULL_SPEED at the maximum clock in the foreground."""
        share = self._persona.work.background_share if self.background else 1.0
        return max(1, round(self.clock() * share * FULL_SPEED))

    def power(self) -> Power:
        """Return what is drawn now."""
        key = (self.load, self.clock(), self.screen_share, self.radio, self.background)
        found = self._powers.get(key)
        if found is None:
            found = self._powers[key] = self._power_of(self._persona)
        return found

    def watts(self) -> float:
        """Return what is drawn now, in watts."""
        return sum(self.power()) / 1e6

    def spend(self, until_ns: int) -> None:
        """Draw the present power until a moment that is no later than the next tick."""
        duration_ns = until_ns - self.now_ns
        power, energy = self.power(), self.energy
        self.energy = Energy(
            energy.work + power.work * duration_ns,
            energy.screen + power.screen * duration_ns,
            energy.base + power.base * duration_ns,
        )
        self.busy_ns += BUSY_CORES[self.load] * duration_ns
        self.now_ns = until_ns

    def next_tick_ns(self) -> int:
        """Return the moment of the next tick, after now."""
        return (self.now_ns // TICK_NS + 1) * TICK_NS

    def tick(self) -> None:
        """Move heat and charge over the tick that ends now, then let the governor decide."""
        spent, self._tick_energy = self._since_tick(), self.energy
        work_w, rest_w = spent.work / 1e15 / TICK_S, (spent.screen + spent.base) / 1e15 / TICK_S
        self.flow = self.cell.flow(work_w + rest_w, self.charge_c, self.plug)
        self.charge_c = max(0.0, self.charge_c - self.flow.current_a * TICK_S)
        self.temperatures = self._network.step(self.temperatures, work_w, rest_w, self.flow.heat_w)
        if (self.now_ns // TICK_NS) % self._poll_ticks == 0:
            self._govern(self.temperatures)

    def _since_tick(self) -> Energy:
        """Return what was drawn since the last tick."""
        return Energy(*(now - then for now, then in zip(self.energy, self._tick_energy, strict=True)))

    def _govern(self, temperatures: Temperatures) -> None:
        """Move one step towards what the sensor asks for; a step is left only below its clearing temperature."""
        facts = self._persona.throttling
        value = getattr(temperatures, facts.sensor)
        if self.throttle_level < len(facts.steps) and value >= facts.steps[self.throttle_level].onset_c:
            self.throttle_level += 1
        elif self.throttle_level and value < facts.steps[self.throttle_level - 1].clear_c:
            self.throttle_level -= 1

    def _forced_clock(self) -> float:
        """Return the clock that a test ordered for this moment."""
        ordered = 1.0
        for moment_ns, clock in self.forced:
            if moment_ns <= self.now_ns:
                ordered = clock
        return ordered

    def _power_of(self, persona: Persona) -> Power:
        facts = persona.power
        full_w = {"idle": 0.0, "load": facts.load_w, "call": facts.call_w, "canary": facts.canary_w}[self.load]
        share = persona.work.background_share if self.background else 1.0
        work_w = full_w * share * self.clock() ** facts.exponent
        base_w = facts.idle_w + (facts.radio_w if self.radio else 0.0)
        return Power(*(round(watts * 1e6) for watts in (work_w, facts.screen_w * self.screen_share, base_w)))
