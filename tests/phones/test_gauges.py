"""Each vendor's gauge: units, signs, steps, refresh, delay, and what it does not know."""

from __future__ import annotations

import pytest

from tests.phones.gauges import BatteryGauge, ZoneGauge
from tests.phones.model_physics import Physics
from tests.phones.models_for_tests import PID, driven_model, pass_seconds, persona_with
from tests.phones.personas import Persona, ZoneFacts, load_persona, persona_names

QUIET = {"current_noise_ma": 0.0, "current_step": 1}


def drained(persona: Persona, seconds: float, load: str = "call") -> tuple[Physics, BatteryGauge]:
    physics = Physics(persona, 0)
    physics.plug, physics.load = "none", load  # type: ignore[assignment]
    gauge = BatteryGauge(persona, physics, 0)
    for _ in range(round(seconds / 0.05)):
        physics.spend(physics.next_tick_ns())
        physics.tick()
        gauge.after_tick(physics)
    return physics, gauge


@pytest.mark.parametrize(
    ("unit", "negative", "factor"),
    [("microamperes", True, -1e6), ("microamperes", False, 1e6), ("milliamperes", True, -1e3)],
)
def test_a_current_has_the_vendors_unit_and_sign(unit: str, negative: bool, factor: float) -> None:
    persona = persona_with(gauge={"current": unit, "discharge_is_negative": negative, **QUIET})
    physics, gauge = drained(persona, 30.0)
    assert gauge.reading.current_now == pytest.approx(factor * physics.flow.current_a, rel=1e-3)


def test_a_stuck_gauge_says_zero_and_a_missing_one_nothing() -> None:
    assert drained(load_persona("old-api29"), 30.0)[1].reading.current_now == 0
    assert drained(load_persona("unknown-soc"), 60.0)[1].reading.current_now is None


def test_a_current_moves_in_the_gauges_steps_and_scatters() -> None:
    persona = persona_with(gauge={"current_step": 5000, "current_noise_ma": 20.0})
    physics, gauge = drained(persona, 1.0)
    found = set()
    for _ in range(200):
        physics.spend(physics.next_tick_ns())
        physics.tick()
        gauge.after_tick(physics)
        found.add(gauge.reading.current_now)
    assert len(found) > 5
    assert all(value % 5000 == 0 for value in found if value is not None)


def test_a_reading_changes_only_at_its_refresh() -> None:
    persona = persona_with(gauge={"refresh_s": 10.0, "current_noise_ma": 5.0})
    physics = Physics(persona, 0)
    physics.plug, physics.load = "none", "call"
    gauge = BatteryGauge(persona, physics, 0)
    moments = []
    for _ in range(600):
        physics.spend(physics.next_tick_ns())
        physics.tick()
        before = gauge.reading
        gauge.after_tick(physics)
        if gauge.reading != before:
            moments.append(physics.now_ns / 1e9)
    assert moments == [10.0, 20.0, 30.0]


def test_the_mean_current_since_the_last_refresh_is_shown_so_that_bursts_are_not_missed() -> None:
    persona = persona_with(gauge={"refresh_s": 10.0, **QUIET})
    physics = Physics(persona, 0)
    physics.plug = "none"
    gauge = BatteryGauge(persona, physics, 0)
    charge_c = physics.charge_c
    for tick in range(200):
        physics.load = "call" if tick % 4 == 0 else "idle"
        physics.spend(physics.next_tick_ns())
        physics.tick()
        gauge.after_tick(physics)
    assert gauge.reading.current_now == pytest.approx(-(charge_c - physics.charge_c) / 10 * 1e6, abs=1)


def test_a_delayed_gauge_shows_what_was_a_refresh_ago() -> None:
    prompt = persona_with(gauge={"refresh_s": 1.0, "delay_periods": 0, **QUIET})
    late = persona_with(gauge={"refresh_s": 1.0, "delay_periods": 1, **QUIET})
    assert drained(late, 6.0)[1].reading == drained(prompt, 5.0)[1].reading


def test_a_charge_counter_counts_in_its_steps_or_not_at_all() -> None:
    for step in (1, 1000, 10_000):
        persona = persona_with(gauge={"charge_step_uah": step})
        physics, gauge = drained(persona, 60.0)
        counter = gauge.reading.charge_counter
        assert counter is not None
        assert counter % step == 0
        assert 0 <= physics.charge_c / 3.6 * 1000 - counter <= step
    assert drained(persona_with(gauge={"charge_step_uah": 0}), 1.0)[1].reading.charge_counter is None


def test_voltage_and_temperature_come_in_the_vendors_units() -> None:
    for unit, factor in (("millivolts", 1e3), ("microvolts", 1e6), ("volts", 1)):
        physics, gauge = drained(persona_with(gauge={"voltage": unit}), 5.0)
        assert gauge.reading.voltage == round(physics.flow.voltage_v * factor)
    physics, gauge = drained(persona_with(gauge={"temperature": "whole"}), 5.0)
    assert gauge.reading.temperature == round(physics.temperatures.battery)


def test_a_cable_is_seen_at_once_though_the_rest_waits() -> None:
    persona = persona_with(gauge={"refresh_s": 30.0, "delay_periods": 1})
    physics = Physics(persona, 0)
    gauge = BatteryGauge(persona, physics, 0)
    level = gauge.reading.level
    physics.plug = "none"
    gauge.plugged(physics)
    assert (gauge.reading.plugged, gauge.reading.status, gauge.reading.level) == (0, 3, level)


def test_the_same_seed_gives_the_same_noise() -> None:
    persona = load_persona("pixel9")
    assert drained(persona, 5.0)[1].reading == drained(persona, 5.0)[1].reading


@pytest.mark.parametrize("name", persona_names())
def test_every_personas_gauge_counts_down_while_it_drains(name: str) -> None:
    persona = load_persona(name)
    _, gauge = drained(persona, 400.0)
    first = BatteryGauge(persona, Physics(persona, 0), 0).reading
    assert gauge.reading.level < first.level
    assert (gauge.reading.plugged, gauge.reading.status) == (0, 3)


def test_a_thermal_zone_feels_its_share_of_its_nodes_rise() -> None:
    persona = load_persona("pixel9")
    physics = Physics(persona, 0)
    physics.temperatures = physics.temperatures._replace(die=65.0)
    zone = ZoneGauge(persona, ZoneFacts(type="x", node="die", share=0.5, offset_c=1.0, step_millic=1000), physics)
    assert zone.millicelsius == 46_000


@pytest.mark.parametrize("name", ["pixel9", "galaxy-s24", "xiaomi-14", "low-ram-4gb"])
def test_energy_by_gauge_comes_within_three_percent_of_the_truth(name: str) -> None:
    persona = load_persona(name)
    factor = (1 if persona.gauge.discharge_is_negative else -1) * (
        -1e-3 if persona.gauge.current == "milliamperes" else -1e-6
    )
    model = driven_model(persona)
    model.unplug()
    pass_seconds(model, 60.0)
    start_ns, joules = model.boot_ns(), 0.0
    for sample in range(1200):
        if sample % 4 == 0:
            with model.present():
                model.work.call(PID, "denoiser", "main", 60_000_000, 0)
        pass_seconds(model, 0.25)
        reading = model.reported.battery()
        joules += (reading.current_now or 0) * factor * reading.voltage / 1000 * 0.25
    assert joules == pytest.approx(model.truth.energy_between(start_ns, model.boot_ns()).total, rel=0.03)
