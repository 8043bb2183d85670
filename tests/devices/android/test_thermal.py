from __future__ import annotations

import pytest

from profiler.devices.android.thermal import Thermal, Zone, read_thermal_service, read_thermal_zones
from profiler.devices.android.unavailable import Faked, Unavailable
from tests.devices.android.captures_for_tests import capture


def thermal(name: str) -> Thermal:
    reading = read_thermal_service(capture(name))
    assert isinstance(reading, Thermal), reading
    return reading


def temperatures(reading: Thermal) -> dict[str, int]:
    return {sensor.name: sensor.temperature_millicelsius for sensor in reading.sensors}


def test_temperatures_are_the_hals_never_the_cached_ones() -> None:
    reading = thermal("thermal_cached_vs_hal")
    assert temperatures(reading) == {"CPU0": 66_500, "CPU1": 64_000, "GPU": 61_500}
    assert {sensor.temperature_millicelsius for sensor in reading.cached_sensors} == {36_000, 37_000}
    assert reading.hottest_millicelsius("cpu", "skin") == 66_500


def test_a_hal_that_is_not_ready_reads_nothing_and_says_so() -> None:
    reading = thermal("thermal_hal_not_ready")
    assert reading.sensors == ()
    assert reading.hal_ready is False
    assert "not ready" in str(reading.no_sensors)
    assert reading.hottest_millicelsius("cpu", "skin", "battery") is None


def test_an_empty_hal_block_reads_nothing_although_cached_ones_stand_above() -> None:
    reading = thermal("thermal_hal_empty")
    assert reading.sensors == ()
    assert "lists no temperatures" in str(reading.no_sensors)
    assert len(reading.cached_sensors) == 1


def test_an_overridden_status_is_faked_and_names_the_command_that_resets_it() -> None:
    faked = read_thermal_service(capture("thermal_override_active"))
    assert isinstance(faked, Faked)
    assert faked.reset_command == "adb shell cmd thermalservice reset"


def test_placeholders_and_other_quantities_are_no_temperatures() -> None:
    """-99.9, a second battery at 0.0, NaN, and a voltage of 3900 mV."""
    assert temperatures(thermal("thermal_aidl")) == {
        "BIG": 41_200,
        "GPU": 38_250,
        "battery": 29_400,
        "VIRTUAL-SKIN": 36_600,
        "TPU": 39_000,
    }


def test_a_sensor_is_what_its_name_says_where_a_vendors_numbers_are_shifted() -> None:
    reading = thermal("thermal_samsung_sdhms")
    parts = {sensor.name: (sensor.part, sensor.type_code) for sensor in reading.sensors}
    assert parts == {
        "TYPE_CPU": ("cpu", 1),
        "TYPE_BATTERY": ("battery", 3),
        "TYPE_SKIN": ("skin", 4),
        "TYPE_USB_PORT": ("other", 5),
    }
    assert reading.hal_connection == "Sdhms connected: yes"


def test_cooling_devices_thresholds_and_headroom_are_read_with_nan_as_missing() -> None:
    reading = thermal("thermal_aidl")
    assert [(device.name, device.value) for device in reading.cooling_devices] == [
        ("battery", 0),
        ("thermal-cpufreq-0", 3),
    ]
    assert reading.thresholds[0].hot_millicelsius == (None, 37_000, 39_000, 41_000, 43_000, 47_000, 55_000)
    assert reading.thresholds[1].name == "battery"
    assert reading.headroom_thresholds == (None, 0.8333333, 0.9, 1.0, 1.0666667, 1.5, 2.5)
    assert reading.status == 1


def test_a_threshold_line_that_is_torn_is_passed_over() -> None:
    text = capture("thermal_aidl").replace(", mHotThrottlingThresholds=[NaN, 37.0", "")
    reading = read_thermal_service(text)
    assert isinstance(reading, Thermal)
    assert [thresholds.name for thresholds in reading.thresholds] == ["battery"]


def test_the_fields_of_a_sensor_may_stand_in_any_order() -> None:
    text = "HAL Ready: true\nCurrent temperatures from HAL:\n Temperature{mName=a, mStatus=1, mType=3, mValue=31,5}\n"
    reading = read_thermal_service(text)
    assert isinstance(reading, Thermal)
    assert [(s.name, s.part, s.temperature_millicelsius, s.status) for s in reading.sensors] == [
        ("a", "skin", 31_500, 1)
    ]


def test_a_heading_that_nobody_knows_ends_the_hals_block() -> None:
    text = capture("thermal_hal_empty").replace("from HAL:\n", "from HAL:\nForecast temperatures:\n", 1)
    reading = read_thermal_service(text + "\tTemperature{mValue=37.0, mType=0, mName=CPU0, mStatus=0}\n")
    assert isinstance(reading, Thermal)
    assert reading.sensors == ()


@pytest.mark.parametrize("text", ["", "Can't find service: thermalservice\n", "Temperature{mValue=3}\n"])
def test_an_unknown_shape_is_unavailable(text: str) -> None:
    answer = read_thermal_service(text)
    assert isinstance(answer, Unavailable)
    assert answer.raw == text


def test_each_zone_is_read_in_the_only_unit_that_is_possible() -> None:
    zones = read_thermal_zones(capture("thermal_zones"))
    assert not isinstance(zones, Unavailable)
    read = {zone.name: zone.temperature_millicelsius for zone in zones if zone.temperature_millicelsius is not None}
    assert read == {"BIG": 41_200, "shell_front": 33_500, "cpu-0-0-usr": 38_000, "pm8350b-tz": 30_900, "soc": 40_000}


@pytest.mark.parametrize("said", ["0", "-1", "-273000", "60", "4000", "", "n/a", "999999"])
def test_a_zone_that_reads_no_temperature_is_missing_with_its_reason(said: str) -> None:
    zones = read_thermal_zones(f"good:31000\nzone:{said}\n")
    assert isinstance(zones, tuple)
    assert isinstance(zones[1], Zone)
    assert zones[1].temperature_millicelsius is None
    assert zones[1].reason


def test_zones_that_nobody_may_read_are_unavailable() -> None:
    denied = "cat: /sys/class/thermal/thermal_zone0/temp: Permission denied\ncpu:\n"
    answer = read_thermal_zones(denied)
    assert isinstance(answer, Unavailable)
    assert "Permission denied" in answer.reason
    assert answer.raw == denied
    assert isinstance(read_thermal_zones(""), Unavailable)
