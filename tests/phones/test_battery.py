"""A cell gives what is drawn at its terminals, loses the rest inside, and charges no faster than it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.phones.battery import STATUS_CHARGING, STATUS_DISCHARGING, STATUS_FULL, STATUS_NOT_CHARGING, Cell
from tests.phones.personas import load_persona

FACTS = load_persona("pixel9").battery
CELL = Cell(FACTS)
CHARGE = st.floats(0.02, 0.99).map(lambda share: share * CELL.capacity_c)


@given(st.floats(0.05, 15.0), CHARGE)
def test_what_is_drawn_is_current_times_terminal_voltage(watts: float, charge_c: float) -> None:
    flow = CELL.flow(watts, charge_c, "none")
    assert flow.current_a * flow.voltage_v == pytest.approx(watts, rel=1e-9)
    assert flow.heat_w == pytest.approx(flow.current_a**2 * FACTS.resistance_ohm)
    assert flow.voltage_v < CELL.open_voltage_v(charge_c)


@given(CHARGE, CHARGE)
def test_a_fuller_cell_has_a_higher_voltage(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert CELL.open_voltage_v(low) <= CELL.open_voltage_v(high)
    assert FACTS.empty_mv <= CELL.open_voltage_v(low) * 1000 <= FACTS.full_mv


@given(st.floats(0.0, 1.5), CHARGE, st.sampled_from(["ac", "usb", "wireless"]))
def test_charging_keeps_to_charger_limit_and_full_voltage(watts: float, charge_c: float, plug: str) -> None:
    flow = CELL.flow(watts, charge_c, plug)  # type: ignore[arg-type]
    assert 0 <= -flow.current_a <= FACTS.charge_limit_ma / 1000
    assert flow.voltage_v <= FACTS.full_mv / 1000 + 1e-9
    assert -flow.current_a * flow.voltage_v + watts <= FACTS.charger_w[plug]


def test_a_charger_that_is_too_weak_leaves_the_rest_to_the_cell() -> None:
    flow = CELL.flow(6.0, CELL.capacity_c / 2, "usb")
    assert flow.current_a * flow.voltage_v == pytest.approx(6.0 - FACTS.charger_w["usb"])


def test_status_tells_the_four_cases_apart() -> None:
    half, full = CELL.capacity_c / 2, CELL.capacity_c
    assert CELL.status(CELL.flow(0.5, half, "none"), half, "none") == STATUS_DISCHARGING
    assert CELL.status(CELL.flow(0.5, half, "ac"), half, "ac") == STATUS_CHARGING
    assert CELL.status(CELL.flow(9.0, half, "usb"), half, "usb") == STATUS_NOT_CHARGING
    assert CELL.status(CELL.flow(0.5, full, "ac"), full, "ac") == STATUS_FULL


def test_a_full_cell_takes_no_current() -> None:
    assert CELL.flow(0.5, CELL.capacity_c, "ac").current_a == 0.0
