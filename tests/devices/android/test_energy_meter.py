from __future__ import annotations

import pytest

from profiler.devices.android.energy_meter import EnergyMeter, energy_between, read_energy_meter
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture


def meter(name: str) -> EnergyMeter:
    reading = read_energy_meter(capture(name))
    assert isinstance(reading, EnergyMeter), reading
    return reading


def test_the_cumulative_column_counts_not_the_delta_nor_the_consumers() -> None:
    assert meter("energy_meter_hal2").by_rail() == {
        "S7M_VDD_TPU": 123_456_780,
        "S2M_VDD_CPUCL2": 9_876_543_210_010,
        "VSYS_PWR_MODEM": 12_000,
    }
    assert [rail.subsystem for rail in meter("energy_meter_hal2").rails] == ["TPU", "CPU", "Modem"]


@pytest.mark.parametrize(
    ("name", "hal", "first"),
    [
        ("energy_meter_hal2_bare", "2.0", ("S4M_VDD_CPUCL0", None, 5_678_900)),
        ("energy_meter_hal1", "1.0", ("S4M_VDD_CPUCL0", "cpu", 5_678_900)),
        ("energy_meter_bars", "2.0", ("S4M_VDD_CPUCL0", "CPU", 5_678_900)),
    ],
)
def test_older_layouts_are_read(name: str, hal: str, first: tuple[str, str | None, int]) -> None:
    assert meter(name).hal == hal
    assert tuple(meter(name).rails[0]) == first


def test_a_rail_that_has_used_nothing_since_boot_reads_0() -> None:
    reading = read_energy_meter("=== PowerStats HAL 2.0 energy meter ===\n  [A]:X  0.00 mWs\n  B|  C  -1.00 mWs\n")
    assert isinstance(reading, EnergyMeter)
    assert reading.by_rail() == {"A": 0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Can't find service: android.hardware.power.stats.IPowerStats/default\n",
        "============= PowerStats HAL 2.0 energy meter ==============\n========== End ==========\n",
        "============= PowerStats HAL 2.0 energy consumers ==============\n  CPU  1.00 mWs\n",
    ],
)
def test_a_phone_without_a_meter_has_none(text: str) -> None:
    assert isinstance(read_energy_meter(text), Unavailable)


def test_the_energy_between_two_readings_is_by_rail() -> None:
    assert energy_between({"a": 5, "b": 7}, {"a": 15, "b": 7}) == {"a": 10, "b": 0}


def test_a_counter_that_fell_back_was_reset() -> None:
    answer = energy_between({"a": 5, "b": 7}, {"a": 15, "b": 6})
    assert isinstance(answer, Unavailable)
    assert "rail b fell back" in answer.reason


def test_other_rails_than_before_make_no_difference_that_counts() -> None:
    answer = energy_between({"a": 5}, {"a": 15, "c": 6})
    assert isinstance(answer, Unavailable)
    assert "c" in answer.reason
