from __future__ import annotations

import pytest

from profiler.devices.android.batterystats import BatteryStats, read_batterystats
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture


def test_times_capacity_and_modelled_use_are_read() -> None:
    stats = read_batterystats(capture("batterystats_checkin"))
    assert isinstance(stats, BatteryStats)
    assert (stats.on_battery_ms, stats.screen_off_ms) == (3_600_000, 1_200_000)
    assert (stats.capacity_microamperehours, stats.modelled_use_microamperehours) == (4_700_000, 123_400)
    assert stats.modelled_use_microamperehours_by_uid == {10123: 51_250, 1000: 3_100}
    assert stats.packages_by_uid[10123] == ("com.example.runner", "com.example.runner.test")


def test_what_is_not_printed_is_missing() -> None:
    stats = read_batterystats("9,0,i,vers,36,220,a,b\n9,0,l,pws,0,12.5\n")
    assert isinstance(stats, BatteryStats)
    assert stats.on_battery_ms is None
    assert stats.capacity_microamperehours is None
    assert stats.modelled_use_microamperehours == 12_500


def test_a_row_that_ends_early_and_a_use_of_0_are_no_trap() -> None:
    stats = read_batterystats("9,0,l,bt,0\n9,0,l,pws,4700,0\n9,10123,l,pwi,uid,0\n")
    assert isinstance(stats, BatteryStats)
    assert (stats.on_battery_ms, stats.modelled_use_microamperehours) == (None, 0)
    assert stats.modelled_use_microamperehours_by_uid == {10123: 0}


@pytest.mark.parametrize("text", ["", "Can't find service: batterystats\n", "9,0,l\n", "a,b,l,bt,1\n"])
def test_an_unknown_shape_is_unavailable(text: str) -> None:
    assert isinstance(read_batterystats(text), Unavailable)
