from __future__ import annotations

import random

import pytest

from profiler.devices.android.battery import Battery, read_battery, read_power_supply
from profiler.devices.android.unavailable import Faked, Unavailable
from tests.devices.android.captures_for_tests import capture


def reading(text: str) -> Battery:
    battery = read_battery(text)
    assert isinstance(battery, Battery), battery
    return battery


def state(**fields: str) -> Battery:
    lines = {"level": "50", "scale": "100", **fields}
    body = "".join(f"  {name.replace('_', ' ')}: {value}\n" for name, value in lines.items())
    return reading(f"Current Battery Service state:\n{body}")


def test_a_full_samsung_on_usb_is_read_and_its_zero_current_is_no_measurement() -> None:
    battery = reading(capture("battery_samsung_full_usb"))
    assert battery.level_percent == 100.0
    assert battery.voltage_millivolts == 4312
    assert battery.temperature_millicelsius == 30_900
    assert battery.powered_by == ("usb",)
    assert battery.external_power is True
    assert battery.charge_counter_microamperehours == 2_967_000
    assert battery.status == "full"
    assert battery.current_raw is None
    assert "current 0" in battery.missing["current_raw"]


def test_a_frozen_state_is_faked_and_names_the_command_that_resets_it() -> None:
    faked = read_battery(capture("battery_override_active"))
    assert isinstance(faked, Faked)
    assert faked.reset_command == "adb shell dumpsys battery reset"
    assert "level: 77" in faked.raw


@pytest.mark.parametrize(
    ("name", "level", "sources", "millivolts", "millicelsius", "counter"),
    [
        ("battery_aosp_13", 72.0, ("usb",), 4127, 27_600, 3_123_000),
        ("battery_aosp_15", 48.0, (), 3861, 29_400, 2_205_000),
        ("battery_samsung_event_log", 72.0, ("ac",), 4251, 34_500, 2_808_000),
        ("battery_lower_case", 66.0, (), 3980, 27_500, 3_310_000),
    ],
)
def test_versions_and_vendors_are_read_alike(
    name: str, level: float, sources: tuple[str, ...], millivolts: int, millicelsius: int, counter: int
) -> None:
    battery = reading(capture(name))
    assert (battery.level_percent, battery.powered_by) == (level, sources)
    assert (battery.voltage_millivolts, battery.temperature_millicelsius) == (millivolts, millicelsius)
    assert battery.charge_counter_microamperehours == counter
    assert battery.technology in ("Li-ion", "Li-poly")


def test_a_vendors_current_stays_a_raw_number_with_its_sign() -> None:
    assert reading(capture("battery_samsung_event_log")).current_raw == -321
    assert reading(capture("battery_lower_case")).current_raw == 412_000
    assert reading(capture("battery_aosp_13")).current_raw is None


def test_a_log_below_the_state_is_no_part_of_it() -> None:
    text = "\nCurrent Battery Service state:\n\n  level: 50\n  scale: 100\n\nBatteryLog:\n  temperature: 999\n"
    assert reading(text).temperature_millicelsius is None
    bracketed = "Current Battery Service state:\n  level: 50\n[Log]\n  temperature: 999\n"
    assert reading(bracketed).temperature_millicelsius is None


def test_the_systems_own_key_wins_over_a_vendors_in_whatever_order_they_stand() -> None:
    text = capture("battery_samsung_event_log")
    swapped = text.replace("Charge counter: 2808000", "x: 1").replace(
        "charge counter: 0", "charge counter: 0\n  Charge counter: 2808000"
    )
    assert reading(swapped).charge_counter_microamperehours == 2_808_000


@pytest.mark.parametrize("name", ["battery_aosp_15", "battery_samsung_full_usb"])
def test_the_order_of_the_lines_does_not_matter(name: str) -> None:
    lines = capture(name).splitlines(keepends=True)
    shuffled = [lines[0], *random.Random(5).sample(lines[1:], len(lines) - 1)]
    assert reading("".join(shuffled)) == reading("".join(lines))


@pytest.mark.parametrize(
    ("said", "millivolts"),
    [("4312", 4312), ("4312000", 4312), ("4.312", 4312), ("4,312", 4312), ("8420", 8420), ("٤٣١٢", 4312)],
)
def test_a_voltage_is_read_in_the_only_unit_that_is_possible(said: str, millivolts: int) -> None:
    assert state(voltage=said).voltage_millivolts == millivolts


@pytest.mark.parametrize("said", ["13", "4", "0", "-4312", "431", "99999999"])
def test_a_voltage_in_no_possible_unit_is_missing_with_its_number(said: str) -> None:
    battery = state(voltage=said)
    assert battery.voltage_millivolts is None
    assert said in battery.missing["voltage_millivolts"]


def test_whole_volts_are_too_coarse_to_be_a_reading() -> None:
    assert "whole volts" in state(voltage="4").missing["voltage_millivolts"]


@pytest.mark.parametrize(
    ("said", "millicelsius"), [("309", 30_900), ("-150", -15_000), ("25.5", 25_500), ("25,5", 25_500), ("101", 10_100)]
)
def test_a_temperature_is_read_in_the_only_unit_that_is_possible(said: str, millicelsius: int) -> None:
    assert state(temperature=said).temperature_millicelsius == millicelsius


@pytest.mark.parametrize("said", ["26", "0", "100", "-20", "30900", "2147483647"])
def test_a_temperature_that_may_be_tenths_or_degrees_is_missing(said: str) -> None:
    """26 may be 26 °C on some phones, and is 2.6 °C by Android's documentation."""
    battery = state(temperature=said)
    assert battery.temperature_millicelsius is None
    assert said in battery.missing["temperature_millicelsius"]


@pytest.mark.parametrize("said", ["0", "2967", "-2967000", "999999999999"])
def test_a_charge_counter_that_makes_no_phones_capacity_is_missing(said: str) -> None:
    battery = state(Charge_counter=said)
    assert battery.charge_counter_microamperehours is None
    assert battery.missing["charge_counter_microamperehours"]


@pytest.mark.parametrize(("level", "scale", "percent"), [("50", "200", 25.0), ("101", "100", None), ("5", "0", None)])
def test_a_level_is_a_share_of_its_scale(level: str, scale: str, percent: float | None) -> None:
    assert state(level=level, scale=scale).level_percent == percent


def test_what_is_not_printed_is_missing_not_false() -> None:
    battery = reading("Current Battery Service state:\n  level: 50\n")
    assert battery == Battery(50.0, None, None, None, None, None, None, None, None, None, None, {})


@pytest.mark.parametrize("text", ["", "Can't find service: battery\n", "error: closed\n", "level\nscale\n"])
def test_an_unknown_shape_is_unavailable_with_its_text(text: str) -> None:
    answer = read_battery(text)
    assert isinstance(answer, Unavailable)
    assert answer.raw == text


def test_a_refusal_is_the_reason() -> None:
    answer = read_battery("Can't find service: battery\n")
    assert isinstance(answer, Unavailable)
    assert answer.reason == "Can't find service: battery"


def test_the_kernels_power_supply_is_read_in_its_own_units() -> None:
    battery = read_power_supply(capture("power_supply_uevent"))
    assert isinstance(battery, Battery)
    assert (battery.voltage_millivolts, battery.temperature_millicelsius) == (4127, 27_600)
    assert (battery.level_percent, battery.status, battery.current_raw) == (72.0, "not charging", -312_500)
    assert battery.external_power is None


def test_a_denied_power_supply_is_unavailable() -> None:
    answer = read_power_supply("cat: /sys/class/power_supply/battery/uevent: Permission denied\n")
    assert isinstance(answer, Unavailable)
    assert "Permission denied" in answer.reason
