"""Energy is conserved, heat throttles with hysteresis, and no result depends on how time is cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.phones.model_physics import FULL_SPEED, TICK_NS, Physics
from tests.phones.models_for_tests import persona_with
from tests.phones.personas import load_persona

PERSONA = load_persona("pixel9")


def run(physics: Physics, ticks: int) -> None:
    for _ in range(ticks):
        physics.spend(physics.next_tick_ns())
        physics.tick()


def state(physics: Physics) -> object:
    return physics.now_ns, physics.temperatures, physics.charge_c, physics.energy, physics.throttle_level


def test_charge_drawn_times_voltage_is_the_energy_used() -> None:
    physics = Physics(PERSONA, 0)
    physics.plug, physics.load = "none", "call"
    joules = 0.0
    for _ in range(12_000):
        before_c = physics.charge_c
        run(physics, 1)
        joules += (before_c - physics.charge_c) * physics.flow.voltage_v
    assert joules == pytest.approx(physics.energy.total / 1e15, rel=1e-3)
    assert joules > 3_000


def test_charging_raises_the_charge_and_warms_the_battery() -> None:
    physics = Physics(PERSONA, 0)
    physics.plug = "ac"
    charge_c, warmth_c = physics.charge_c, physics.temperatures.battery
    run(physics, 2_000)
    assert physics.charge_c > charge_c + 100
    assert physics.temperatures.battery > warmth_c + 0.5


def test_a_cell_does_not_go_below_empty() -> None:
    physics = Physics(PERSONA, 0)
    physics.plug, physics.charge_c, physics.load = "none", 0.01, "call"
    run(physics, 10)
    assert physics.charge_c == 0.0


def test_work_heats_until_clocks_fall_and_they_rise_again_only_well_below_where_they_fell() -> None:
    physics = Physics(PERSONA, 0)
    step = PERSONA.throttling.steps[0]
    physics.load = "call"
    while physics.throttle_level == 0:
        run(physics, 1)
    assert physics.temperatures.skin >= step.onset_c
    assert physics.clock() == step.clock
    physics.load = "idle"
    while physics.throttle_level == 1:
        assert physics.temperatures.skin > step.clear_c - 0.1
        run(physics, 1)
    assert physics.temperatures.skin < step.clear_c
    assert physics.clock() == 1.0


def test_throttled_work_draws_less_and_goes_slower() -> None:
    physics = Physics(PERSONA, 0)
    physics.load = "call"
    full_uw, full_speed = physics.power().work, physics.speed()
    physics.throttle_level = 2
    assert physics.power().work < 0.6 * full_uw
    assert physics.speed() == round(0.72 * full_speed)


def test_the_governor_looks_only_as_often_as_it_polls() -> None:
    physics = Physics(persona_with(throttling={"poll_s": 1.0}), 0)
    physics.temperatures = physics.temperatures._replace(skin=90.0, die=90.0, battery=90.0)
    run(physics, 19)
    assert physics.throttle_level == 0
    run(physics, 1)
    assert physics.throttle_level == 1


def test_power_saving_background_and_fixed_performance_each_slow_work_down() -> None:
    physics = Physics(PERSONA, 0)
    assert physics.speed() == FULL_SPEED
    physics.power_save = True
    assert physics.speed() == round(PERSONA.power.power_save_clock * FULL_SPEED)
    physics.power_save, physics.background = False, True
    assert physics.speed() == round(PERSONA.work.background_share * FULL_SPEED)
    physics.background, physics.fixed_performance = False, True
    assert physics.clock() == PERSONA.power.fixed_performance_clock


def test_an_ordered_clock_holds_from_its_moment() -> None:
    physics = Physics(PERSONA, 0)
    physics.forced = ((TICK_NS, 0.4), (2 * TICK_NS, 1.0))
    clocks = []
    for _ in range(3):
        clocks.append(physics.clock())
        run(physics, 1)
    assert clocks == [1.0, 0.4, 1.0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(TICK_NS // 20, TICK_NS), min_size=1, max_size=8), st.integers(1, 20))
def test_the_same_stretch_gives_the_same_state_however_it_is_cut(cuts: list[int], ticks: int) -> None:
    whole, pieces = Physics(PERSONA, 0), Physics(PERSONA, 0)
    whole.load = pieces.load = "call"
    run(whole, ticks)
    length = itertools.cycle(cuts)
    while pieces.now_ns < ticks * TICK_NS:
        tick_ns = pieces.next_tick_ns()
        pieces.spend(min(tick_ns, pieces.now_ns + next(length)))
        if pieces.now_ns == tick_ns:
            pieces.tick()
    assert state(whole) == state(pieces)


def test_a_copy_goes_its_own_way() -> None:
    physics = Physics(PERSONA, 0)
    before = state(physics)
    twin = physics.copy()
    twin.load = "call"
    run(twin, 50)
    assert state(physics) == before
    assert state(twin) != before
