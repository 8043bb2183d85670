from __future__ import annotations

import pytest

from profiler.devices.android.screen import Screen, read_screen
from profiler.devices.android.unavailable import Unavailable
from tests.devices.android.captures_for_tests import capture


def screen(power: str, window: str = "", trust: str = "", idle: str = "") -> Screen:
    reading = read_screen(power, window, trust, idle)
    assert isinstance(reading, Screen), reading
    return reading


def test_an_awake_open_phone_is_read() -> None:
    reading = screen(capture("power_awake_15"), capture("window_policy_open"))
    assert reading == Screen("awake", True, False, True, None, True, 2, 30_000, False)


def test_a_dozing_locked_phone_is_read() -> None:
    reading = screen(capture("power_dozing_29"), capture("window_policy_locked"), capture("trust_locked"))
    assert reading == Screen("dozing", False, True, True, True, False, 0, 60_000, True)


@pytest.mark.parametrize(
    ("window", "trust", "idle", "showing"),
    [
        ("    mShowingLockscreen=true mShowingDream=false", "", "", True),
        ("  isKeyguardShowing= false", "", "", False),
        ("  KeyguardController:\n    mKeyguardShowing=true", "", "", True),
        ("", "", "  mScreenOn=true\n  mScreenLocked=true", True),
        ("  isKeyguardShowing=false", ' User "a" (id=0) (current): deviceLocked=1', "", True),
        ("", ' User "a" (id=0) (current): deviceLocked=0', "", False),
        ("", ' User "a" (id=10): deviceLocked=1', "", None),
        ("", "", "", None),
    ],
)
def test_versions_name_the_keyguard_otherwise(window: str, trust: str, idle: str, showing: bool | None) -> None:
    assert screen("mWakefulness=Awake", window, trust, idle).keyguard_showing is showing


@pytest.mark.parametrize(
    ("power", "idle", "awake"),
    [
        ("mWakefulness=Asleep", "", False),
        ("mWakefulness=Dreaming\nDisplay Power: state=ON", "", False),
        ("Display Power: state=ON", "", True),
        ("Display Power: state=OFF", "", False),
        ("mPowerState=SCREEN_BRIGHT_BIT SCREEN_ON_BIT", "", True),
        ("mPowerState=0", "", False),
        ("mStayOn=false", "mScreenOn=true", True),
    ],
)
def test_versions_name_wakefulness_otherwise(power: str, idle: str, awake: bool) -> None:
    assert screen(power, idle=idle).awake is awake


@pytest.mark.parametrize(
    ("power", "low"),
    [
        ("mWakefulness=Awake\n  mLowPowerModeEnabled=true", True),
        ("Battery saver is currently: OFF", False),
        ("mWakefulness=Awake", None),
    ],
)
def test_versions_name_power_saving_otherwise(power: str, low: bool | None) -> None:
    assert screen(power).low_power is low


@pytest.mark.parametrize("power", ["", "Can't find service: power\n"])
def test_an_unknown_shape_is_unavailable(power: str) -> None:
    assert isinstance(read_screen(power), Unavailable)
