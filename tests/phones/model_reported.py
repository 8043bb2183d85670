"""What the system tells of battery and heat: gauges, then whatever somebody faked on top, as real phones do."""

from __future__ import annotations

from typing import NamedTuple

from tests.phones.gauges import BatteryGauge, BatteryReading, ZoneGauge, sensed
from tests.phones.model_physics import TICK_NS, Physics
from tests.phones.personas import HalSensor, Persona

_STATUS_HYSTERESIS_C = 1.5
_SEVERE = 3
# PowerManager's forecast runs from 30 °C below SEVERE (0.0) to SEVERE (1.0), and is refused when asked too often.
_HEADROOM_SPAN_C = 30.0
_HEADROOM_PERIOD_NS = 900_000_000
_RAIL_TICKS = 5


class HalTemperature(NamedTuple):
    """One temperature as the thermal HAL gives it."""

    value_c: float
    sensor: HalSensor
    status: int


class Reported:
    """Battery, thermal status, sensors and energy rails as the system would tell an app or the shell."""

    def __init__(self, persona: Persona, physics: Physics, seed: int) -> None:
        self._persona = persona
        self._physics = physics
        self._gauge = BatteryGauge(persona, physics, seed)
        self.zones = tuple(ZoneGauge(persona, facts, physics) for facts in persona.zones)
        self.battery_faked: BatteryReading | None = None
        self.status_faked: int | None = None
        self._status = 0
        self._headroom_ns: int | None = None
        self._rails = self._rails_now()
        self._rails_at_boot = dict.fromkeys(self._rails, 0)
        self._dumped: tuple[int, dict[str, int]] | None = None
        self.cached = self.hal_temperatures()

    def after_tick(self) -> None:
        """Refresh every gauge whose time has come."""
        ticks = self._physics.now_ns // TICK_NS
        self._gauge.after_tick(self._physics)
        for zone in self.zones:
            zone.after_tick(self._physics)
        if ticks % _RAIL_TICKS == 0:
            self._rails = self._rails_now()
        if ticks % round(1e9 / TICK_NS) == 0:
            self._status = self._status_now()
        if ticks % round(self._persona.thermal_service.cached_lag_s * 1e9 / TICK_NS) == 0:
            self.cached = self.hal_temperatures()

    def cable_moved(self) -> None:
        """Show a cable that went in or out."""
        self._gauge.plugged(self._physics)

    def battery(self) -> BatteryReading:
        """Return the battery as apps are told: faked while an override is on, but for what the gauge itself gives."""
        true, faked = self._gauge.reading, self.battery_faked
        if faked is None:
            return true
        return faked._replace(current_now=true.current_now, charge_counter=true.charge_counter)

    def gauge_reading(self) -> BatteryReading:
        """Return what the gauge itself says."""
        return self._gauge.reading

    def dumped_battery(self) -> BatteryReading:
        """Return what `dumpsys battery` prints: while somebody fakes it, all of it stands still."""
        return self.battery_faked or self._gauge.reading

    def fake_battery(self, **values: int) -> None:
        """Freeze the reported state and change some of it; charging goes on meanwhile."""
        self.battery_faked = self.dumped_battery()._replace(**values)

    def reset_battery(self) -> None:
        """Report what the gauge says again."""
        self.battery_faked = None

    def thermal_status(self) -> int:
        """Return the status 0–6 that apps are told."""
        return self._status if self.status_faked is None else self.status_faked

    def headroom(self) -> float | None:
        """Return the share of the way to SEVERE that the skin has gone, None where it is unknown or asked too often."""
        now_ns, before_ns = self._physics.now_ns, self._headroom_ns
        if not self._persona.thermal_service.headroom or (
            before_ns is not None and now_ns - before_ns < _HEADROOM_PERIOD_NS
        ):
            return None
        self._headroom_ns = now_ns
        severe_c = self._persona.thermal_service.thresholds_c[_SEVERE - 1]
        return max(0.0, 1.0 - (severe_c - self._physics.temperatures.skin) / _HEADROOM_SPAN_C)

    def hal_temperatures(self) -> tuple[HalTemperature, ...]:
        """Return what the HAL gives now; empty where a vendor daemon keeps it to itself."""
        return tuple(self._hal(sensor) for sensor in self._persona.thermal_service.sensors)

    def rails(self) -> dict[str, int] | None:
        """Return µW·s since boot by rail, None without a meter."""
        if not self._rails:
            return None
        return {name: value - self._rails_at_boot[name] for name, value in self._rails.items()}

    def rails_since_last_dump(self) -> tuple[int, dict[str, int]]:
        """Return (ms, µW·s by rail) since the last call of whoever asked: the HAL remembers one for all."""
        now, now_ns = self.rails() or {}, self._physics.now_ns
        then_ns, then = self._dumped or (now_ns, {})
        self._dumped = (now_ns, now)
        return (now_ns - then_ns) // 1_000_000, {name: value - then.get(name, 0) for name, value in now.items()}

    def booted(self) -> None:
        """Begin anew after a reboot: nothing is faked, rails count from 0."""
        self.battery_faked = self.status_faked = self._headroom_ns = self._dumped = None
        self._rails_at_boot = dict(self._rails)

    def _status_now(self) -> int:
        """Count the thresholds that the skin is above; a status is left only well below its threshold."""
        facts, skin_c = self._persona.thermal_service, self._physics.temperatures.skin
        if not facts.reports_status:
            return 0
        above = sum(skin_c >= threshold for threshold in facts.thresholds_c)
        still = sum(skin_c >= threshold - _STATUS_HYSTERESIS_C for threshold in facts.thresholds_c)
        return max(above, min(self._status, still))

    def _hal(self, sensor: HalSensor) -> HalTemperature:
        value = sensed(self._persona, self._physics.temperatures, sensor)
        status = self._status if sensor.node == "skin" else 0
        return HalTemperature(round(value / sensor.step_c) * sensor.step_c, sensor, status)

    def _rails_now(self) -> dict[str, int]:
        energy = self._physics.energy
        return {
            name: round((energy.work * rail.work + energy.screen * rail.screen + energy.base * rail.base) / 1e9)
            for name, rail in self._persona.rails.items()
        }
