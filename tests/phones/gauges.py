"""What a phone's gauges say of its state: refreshed rarely, quantised, noisy, delayed, in the vendor's units."""

from __future__ import annotations

import random
from collections import deque
from typing import NamedTuple

from tests.phones.battery import PLUGGED_NUMBER
from tests.phones.heat import Temperatures
from tests.phones.model_physics import TICK_NS, TICK_S, Physics
from tests.phones.personas import GaugeFacts, HalSensor, Persona, ZoneFacts

VOLTAGE_PER_V = {"millivolts": 1000, "microvolts": 1_000_000, "volts": 1}


def sensed(persona: Persona, temperatures: Temperatures, sensor: ZoneFacts | HalSensor) -> float:
    """Return what a sensor feels, in °C: its share of its node's rise above ambient, and its own error."""
    ambient = persona.heat.ambient_c
    node: float = getattr(temperatures, sensor.node)
    return ambient + sensor.share * (node - ambient) + sensor.offset_c


class BatteryReading(NamedTuple):
    """What BatteryManager returns, in the vendor's units and signs; None where it is not supported."""

    current_now: int | None
    charge_counter: int | None
    voltage: int
    temperature: int
    level: int
    plugged: int
    status: int
    moment_ns: int


class BatteryGauge:
    """A coulomb-counting gauge: its current is the mean since its last refresh."""

    def __init__(self, persona: Persona, physics: Physics, seed: int) -> None:
        self._facts: GaugeFacts = persona.gauge
        self._ticks = max(1, round(self._facts.refresh_s / TICK_S))
        self._random = random.Random(f"gauge:{seed}")
        self._charge_c = physics.charge_c
        first = self._take(physics)._replace(current_now=self._current(physics.flow.current_a))
        self._readings = deque([first], maxlen=self._facts.delay_periods + 1)

    @property
    def reading(self) -> BatteryReading:
        """Return what the gauge shows now."""
        return self._readings[0]

    def after_tick(self, physics: Physics) -> None:
        """Refresh if it is time to."""
        if (physics.now_ns // TICK_NS) % self._ticks == 0:
            self._readings.append(self._take(physics))

    def plugged(self, physics: Physics) -> None:
        """Show a cable that went in or out at once, as the kernel's event does; the rest waits for its refresh."""
        status = physics.cell.status(physics.flow, physics.charge_c, physics.plug)
        number = PLUGGED_NUMBER[physics.plug]
        for at, reading in enumerate(self._readings):
            self._readings[at] = reading._replace(plugged=number, status=status)

    def _take(self, physics: Physics) -> BatteryReading:
        mean_a = (self._charge_c - physics.charge_c) / (self._ticks * TICK_S)
        self._charge_c = physics.charge_c
        return BatteryReading(
            self._current(mean_a),
            self._counter(physics.charge_c),
            round(physics.flow.voltage_v * VOLTAGE_PER_V[self._facts.voltage]),
            self._temperature(physics.temperatures.battery),
            round(100 * physics.cell.share(physics.charge_c)),
            PLUGGED_NUMBER[physics.plug],
            physics.cell.status(physics.flow, physics.charge_c, physics.plug),
            physics.now_ns,
        )

    def _current(self, drained_a: float) -> int | None:
        """Give a current out of the cell in the vendor's unit, sign and step."""
        facts = self._facts
        if facts.current is None or facts.current == "zero":
            return None if facts.current is None else 0
        milliamperes = drained_a * 1000 + self._random.gauss(0.0, facts.current_noise_ma)
        signed = -milliamperes if facts.discharge_is_negative else milliamperes
        raw = signed * 1000 if facts.current == "microamperes" else signed
        return round(raw / facts.current_step) * facts.current_step

    def _counter(self, charge_c: float) -> int | None:
        step = self._facts.charge_step_uah
        return int(charge_c / 3.6 * 1000 / step) * step if step else None

    def _temperature(self, celsius: float) -> int:
        return round(celsius) if self._facts.temperature == "whole" else round(celsius * 10)


class ZoneGauge:
    """One thermal zone in milli-°C."""

    def __init__(self, persona: Persona, facts: ZoneFacts, physics: Physics) -> None:
        self._persona = persona
        self.facts = facts
        self._ticks = max(1, round(facts.refresh_s / TICK_S))
        self.millicelsius = self._take(physics)

    def after_tick(self, physics: Physics) -> None:
        """Refresh if it is time to."""
        if (physics.now_ns // TICK_NS) % self._ticks == 0:
            self.millicelsius = self._take(physics)

    def _take(self, physics: Physics) -> int:
        value = sensed(self._persona, physics.temperatures, self.facts)
        return round(value * 1000 / self.facts.step_millic) * self.facts.step_millic
