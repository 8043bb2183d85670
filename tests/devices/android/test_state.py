from __future__ import annotations

import pytest

from profiler.catalog import device_profile
from profiler.devices.android.battery import Battery
from profiler.devices.android.properties import facts_of
from profiler.devices.android.shell import Shell
from profiler.devices.android.state import conditions_of, read_state, refuse_faked, state_of, unit_of
from profiler.errors import DeviceError
from tests.phones.android.phone import VirtualAndroid


def test_one_command_reads_the_whole_state_of_a_phone(shell: Shell, phone: VirtualAndroid) -> None:
    state = read_state(shell)
    assert isinstance(state.battery, Battery)
    conditions = conditions_of(state)
    assert conditions.power.battery_percent == phone.model.reported.battery().level
    assert conditions.temperature_millicelsius is not None
    assert conditions.battery_temperature_millicelsius is not None
    assert conditions.free_storage_bytes == pytest.approx(phone.model.storage.free_bytes, rel=0.01)
    assert conditions.cpu_frequency_max_khz == 3_105_000
    assert conditions.uptime_s is not None
    assert state.cores == 8
    assert conditions.screen_on is not None
    assert "S2M_VDD_CPUCL2" in (conditions.energy_microwattseconds_by_rail or {})


def test_a_unit_is_told_by_what_the_phone_says_and_not_by_its_serial(shell: Shell, phone: VirtualAndroid) -> None:
    facts = facts_of({"ro.product.model": "Pixel 9", "ro.build.version.sdk": "36", "ro.profiler.virtual": "1"})
    unit = unit_of(device_profile("pixel9"), facts, read_state(shell), "0123456789ab")
    assert (unit.profile, unit.platform, unit.is_phone, unit.virtual) == ("pixel9", "android", True, True)
    assert unit.api_level == 36
    assert phone.serial not in repr(unit)


def test_an_override_refuses_the_phone_with_the_command_that_takes_it_back() -> None:
    state = state_of({"battery": "Current Battery Service state:\n  (UPDATES STOPPED -- use 'reset' to restart)\n"})
    with pytest.raises(DeviceError, match="faked") as caught:
        refuse_faked(state, "4A171")
    assert "adb shell dumpsys battery reset" in str(caught.value)


def test_a_phone_that_tells_nothing_has_conditions_that_are_missing_with_reasons() -> None:
    conditions = conditions_of(state_of({}))
    assert conditions.power.battery_percent is None
    assert conditions.power.reason
    assert conditions.temperature_millicelsius is None
    assert conditions.temperature_reason
    assert conditions.free_storage_bytes is conditions.available_memory_bytes is None


def test_zones_stand_in_for_a_thermal_service_that_is_not_ready() -> None:
    state = state_of(
        {
            "thermal": "Thermal Status: 0\nCached temperatures:\nHAL Ready: false\n",
            "zones": "cpu-0-0:41500\nbattery:29000\nskin-therm:38200\n",
        }
    )
    assert state.processor_millicelsius() == 41_500
