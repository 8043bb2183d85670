from __future__ import annotations

from collections.abc import Iterator

import pytest

from profiler.clock import Deadline, FakeClock
from profiler.devices.android.battery import read_battery
from profiler.devices.android.cool_down import Bars, check_charge, read_charge, read_temperatures, wait_until_cool
from profiler.devices.android.thermal import ZONES_COMMAND
from profiler.devices.android.unavailable import Faked, Unavailable
from profiler.errors import DeviceError
from tests.devices.android.captures_for_tests import capture
from tests.devices.android.scripted_for_tests import ScriptedPhone


def battery(level: int = 50, tenths: int = 300) -> str:
    return f"Current Battery Service state:\n  level: {level}\n  scale: 100\n  temperature: {tenths}\n"


def heat(cpu: float, skin: float) -> str:
    return (
        "IsStatusOverride: false\nThermal Status: 0\nHAL Ready: true\nCurrent temperatures from HAL:\n"
        f"\tTemperature{{mValue={cpu}, mType=0, mName=CPU, mStatus=0}}\n"
        f"\tTemperature{{mValue={skin}, mType=3, mName=SKIN, mStatus=0}}\n"
    )


def looks(*readings: tuple[str, str]) -> list[tuple[str, str]]:
    return [
        (command, answer)
        for charge, warmth in readings
        for command, answer in (("dumpsys battery", charge), ("dumpsys thermalservice", warmth))
    ]


@pytest.mark.parametrize(("level", "notes"), [(30, 0), (80, 0), (81, 1), (100, 1)])
def test_a_charge_in_its_band_is_fit_and_one_above_is_a_note(level: int, notes: int) -> None:
    reading = read_battery(battery(level))
    assert not isinstance(reading, Faked)
    assert len(check_charge(reading, "Pixel")) == notes


def test_a_low_charge_is_refused_unless_it_is_allowed() -> None:
    reading = read_battery(battery(29))
    assert not isinstance(reading, Faked)
    with pytest.raises(DeviceError, match=r"battery of Pixel is at 29 %(.|\n)*Charge it to between 30 and 80 %"):
        check_charge(reading, "Pixel")
    assert "may slow down" in check_charge(reading, "Pixel", least_percent=0)[0]


def test_an_unknown_charge_is_a_note() -> None:
    assert "cannot be read" in check_charge(Unavailable("no service", ""), "Pixel")[0]


def test_a_faked_charge_is_refused() -> None:
    with pytest.raises(DeviceError, match="adb shell dumpsys battery reset"):
        read_charge(lambda _: capture("battery_override_active"), "Pixel")


def test_a_cool_phone_is_not_waited_for() -> None:
    phone = ScriptedPhone(looks((battery(), heat(40.0, 30.0))))
    told: list[str] = []
    cool = wait_until_cool(phone.run, "Pixel", FakeClock(), told.append)
    phone.finish()
    assert (cool.waited_s, cool.notes, told) == (0.0, (), [])
    assert tuple(cool.temperatures) == (30_000, 30_000, 40_000)


def test_a_hot_phone_is_waited_for_and_each_look_says_for_what() -> None:
    phone = ScriptedPhone(
        looks(
            (battery(tenths=371), heat(61.5, 38.0)),
            (battery(tenths=351), heat(45.0, 35.0)),
            (battery(tenths=349), heat(44.0, 34.0)),
        )
    )
    told: list[str] = []
    cool = wait_until_cool(phone.run, "Pixel", FakeClock(), told.append)
    phone.finish()
    assert cool.waited_s == 10.0
    everything, battery_alone = told
    assert everything.startswith("waiting for Pixel to cool down, 10 min at most: battery 37.1 °C (bar 35.0 °C), ")
    assert everything.endswith("skin 38.0 °C (bar 36.0 °C), processor 61.5 °C (bar 50.0 °C)")
    assert battery_alone == "waiting for Pixel to cool down, 10 min at most: battery 35.1 °C (bar 35.0 °C)"


def test_a_status_of_none_does_not_make_a_hot_phone_cool_nor_does_a_high_one_make_it_hot() -> None:
    hot = ScriptedPhone(looks((battery(), heat(70.0, 30.0))))
    with pytest.raises(DeviceError, match="did not cool down"):
        wait_until_cool(hot.run, "Pixel", FakeClock(), lambda _: None, deadline=Deadline(0, FakeClock()))
    cool = ScriptedPhone(looks((battery(), heat(30.0, 30.0).replace("Thermal Status: 0", "Thermal Status: 4"))))
    assert wait_until_cool(cool.run, "Pixel", FakeClock(), lambda _: None).waited_s == 0.0


def test_a_phone_that_stays_hot_fails_after_ten_minutes() -> None:
    clock = FakeClock()

    def run(command: str) -> str:
        return battery(tenths=400) if command == "dumpsys battery" else heat(30.0, 30.0)

    with pytest.raises(DeviceError, match=r"did not cool down in time: battery 40.0 °C(.|\n)*out of its case"):
        wait_until_cool(run, "Pixel", clock, lambda _: None)
    assert clock.boot_ns() == 600_000_000_000


def test_a_deadline_is_shared_with_whoever_gives_it() -> None:
    clock = FakeClock()
    deadline = Deadline(7, clock)
    with pytest.raises(DeviceError, match="did not cool down"):
        wait_until_cool(
            lambda command: battery(tenths=400) if "battery" in command else "",
            "Pixel",
            clock,
            lambda _: None,
            deadline=deadline,
        )
    assert clock.boot_ns() == 7_000_000_000


def test_bars_may_be_a_phones_own() -> None:
    phone = ScriptedPhone(looks((battery(tenths=380), heat(60.0, 40.0))))
    bars = Bars(battery_millicelsius=39_000, skin_millicelsius=41_000, processor_millicelsius=61_000)
    assert wait_until_cool(phone.run, "Pixel", FakeClock(), lambda _: None, bars=bars).waited_s == 0.0


def test_zones_stand_in_for_a_hal_that_is_not_ready() -> None:
    phone = ScriptedPhone(
        [*looks((battery(), capture("thermal_hal_not_ready"))), (ZONES_COMMAND, capture("thermal_zones"))]
    )
    assert read_temperatures(phone.run, "Pixel").processor_millicelsius == 41_200
    phone.finish()


def test_the_hals_battery_sensor_stands_in_for_a_temperature_in_an_unknown_unit() -> None:
    phone = ScriptedPhone(looks((battery(tenths=26), capture("thermal_aidl"))))
    assert tuple(read_temperatures(phone.run, "Pixel")) == (29_400, 36_600, 41_200)
    phone.finish()


def test_a_phone_without_any_temperature_is_not_waited_for_and_a_note_says_so() -> None:
    phone = ScriptedPhone([("dumpsys battery", ""), ("dumpsys thermalservice", ""), (ZONES_COMMAND, "")])
    cool = wait_until_cool(phone.run, "Pixel", FakeClock(), lambda _: None)
    phone.finish()
    assert cool.waited_s == 0.0
    assert "no temperature" in cool.notes[0]


def test_an_override_that_begins_while_waiting_is_refused() -> None:
    answers: Iterator[str] = iter(
        [battery(tenths=400), heat(30.0, 30.0), battery(), capture("thermal_override_active")]
    )
    with pytest.raises(DeviceError, match="cmd thermalservice reset"):
        wait_until_cool(lambda _: next(answers), "Pixel", FakeClock(), lambda _: None)
