"""Whether a phone is awake, unlocked and not saving power: `dumpsys power`, `window`, `trust` and `deviceidle`.

Every version prints other names; what no name tells is None, never "no".
"""

from __future__ import annotations

import re
from typing import NamedTuple

from profiler.devices.android.numerals import integer, truth
from profiler.devices.android.unavailable import Unavailable, refused

POWER_COMMAND = "dumpsys power"
WINDOW_COMMAND = "dumpsys window policy"
TRUST_COMMAND = "dumpsys trust"
IDLE_COMMAND = "dumpsys deviceidle"

_BOOL = r"\s*=\s*(true|false)\b"
# The window policy's own word first; the others stand in older versions and in the keyguard's part of the dump.
_KEYGUARD = tuple(
    re.compile(rf"\b{name}{_BOOL}")
    for name in ("isKeyguardShowing", "mKeyguardShowing", "mShowingLockscreen", "isStatusBarKeyguard", "showing")
)
_KEYGUARD_IDLE = re.compile(r"\bmScreenLocked" + _BOOL)
_SECURE = re.compile(r"\b(?:isKeyguardSecure|mIsKeyguardSecure|isSecure|secure)" + _BOOL)
_LOCKED_BY_TRUST = re.compile(r"\(current\).*?\bdeviceLocked=([01])")
_WAKEFULNESS = re.compile(r"\bmWakefulness\s*=\s*(\w+)")
_DISPLAY = re.compile(r"Display Power: state=(\w+)")
_OLD_POWER_STATE = re.compile(r"\bmPowerState\s*=\s*(\w*)")
_SCREEN_ON_IDLE = re.compile(r"\bmScreenOn" + _BOOL)
_STAY_ON = re.compile(r"\bmStayOn" + _BOOL)
_STAY_ON_SETTING = re.compile(r"\bmStayOnWhilePluggedInSetting\s*=\s*(-?\d+)")
_TIMEOUT = re.compile(r"Screen off timeout: (-?\d+) ms")
_SAVER = re.compile(r"Battery [sS]aver is currently:\s*(ON|OFF)")
_SAVER_FLAG = re.compile(r"\b(?:mLowPowerModeEnabled|mSettingBatterySaverEnabled|mFullBatterySaverEnabled)" + _BOOL)
_IDLE_SAVER = re.compile(r"\bmBatterySaverEnabled" + _BOOL)


class Screen(NamedTuple):
    """The state of screen, lock and power saving; None is "the phone does not say".

    `keyguard_secure`: there is a PIN, pattern or password. `keyguard_locked`: it is wanted now, which it is not at a
    place or beside a watch that the phone trusts. `stays_on`: on account of being plugged in.
    """

    wakefulness: str | None
    awake: bool | None
    keyguard_showing: bool | None
    keyguard_secure: bool | None
    keyguard_locked: bool | None
    stays_on: bool | None
    stay_on_setting: int | None
    screen_off_timeout_ms: int | None
    low_power: bool | None


def read_screen(power: str, window: str = "", trust: str = "", idle: str = "") -> Screen | Unavailable:
    """Read the four services' dumps, each of which may be empty or a refusal."""
    wakefulness = _wakefulness(power)
    screen = Screen(
        wakefulness=wakefulness,
        awake=_awake(wakefulness, power, idle),
        keyguard_showing=_keyguard(window, trust, idle),
        keyguard_secure=_secure(window, trust),
        keyguard_locked=_locked(trust),
        stays_on=_flag(_STAY_ON, power),
        stay_on_setting=_number(_STAY_ON_SETTING, power),
        screen_off_timeout_ms=_number(_TIMEOUT, power),
        low_power=_low_power(power, idle),
    )
    if all(field is None for field in screen):
        return Unavailable(refused(power) or "no state of the screen in what dumpsys printed", power)
    return screen


def _wakefulness(power: str) -> str | None:
    match = _WAKEFULNESS.search(power)
    return match[1].lower() if match else None


def _awake(wakefulness: str | None, power: str, idle: str) -> bool | None:
    """Return whether the screen is on for use: dozing and dreaming (a screen saver) are not."""
    if wakefulness is not None:
        return wakefulness == "awake"
    display = _DISPLAY.search(power)
    if display:
        return display[1] == "ON"
    old = _OLD_POWER_STATE.search(power)
    return "SCREEN_ON" in old[1] or "SCREEN_BRIGHT" in old[1] if old else _flag(_SCREEN_ON_IDLE, idle)


def _keyguard(window: str, trust: str, idle: str) -> bool | None:
    """Return whether the keyguard shows, by the first that tells; a phone that is locked shows it whatever they say."""
    if _locked(trust):
        return True
    signs = [*(_flag(pattern, window) for pattern in _KEYGUARD), _flag(_KEYGUARD_IDLE, idle), _locked(trust)]
    return next((sign for sign in signs if sign is not None), None)


def _secure(window: str, trust: str) -> bool | None:
    return True if _locked(trust) else _flag(_SECURE, window)


def _locked(trust: str) -> bool | None:
    match = _LOCKED_BY_TRUST.search(trust)
    return truth(match[1]) if match else None


def _low_power(power: str, idle: str) -> bool | None:
    match = _SAVER.search(power)
    if match:
        return match[1] == "ON"
    saver = _flag(_SAVER_FLAG, power)
    return _flag(_IDLE_SAVER, idle) if saver is None else saver


def _flag(pattern: re.Pattern[str], text: str) -> bool | None:
    match = pattern.search(text)
    return truth(match[1]) if match else None


def _number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return integer(match[1]) if match else None
