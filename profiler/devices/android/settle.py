"""Makes a phone fit to be measured, shows first what that changes, and makes it what it was again.

Screen on and unlocked, fixed brightness, no power saving: a locked or saving phone is up to ten times slower. The
reported battery state and the thermal status are never written; a phone on which somebody faked them is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from profiler.clock import Clock, Deadline
from profiler.devices.android import screen
from profiler.devices.android.cool_down import read_charge, read_heat
from profiler.devices.android.former import Former, FormerSetting, SettingName, forget_former, read_former, write_former
from profiler.devices.android.screen import Screen
from profiler.devices.android.settings import RunCommand, SettingRefused, Untaken, read_setting, write_setting
from profiler.devices.android.unavailable import Unavailable
from profiler.errors import DeviceError

_OPEN_WITHIN_S = 5.0
_LOOK_EVERY_S = 0.25
# Android keeps the brightness as a fraction too, and rounds when it goes back.
_ROUNDING = {"screen_brightness": 2}
_WAKE = "input keyevent KEYCODE_WAKEUP"
_SLEEP = "input keyevent KEYCODE_SLEEP"
_OPEN = "wm dismiss-keyguard"


class Wish(NamedTuple):
    """One setting as it should be; `why` is a sentence's beginning."""

    namespace: str
    name: SettingName
    value: int
    why: str


# In this order: power saving would change the brightness itself, and adapting would undo it.
WISHES = (
    Wish("global", "low_power", 0, "switch power saving off"),
    Wish("global", "stay_on_while_plugged_in", 7, "keep the screen on while it is plugged in"),
    Wish("system", "screen_off_timeout", 2_147_483_647, "keep the screen on when it is not"),
    Wish("system", "screen_brightness_mode", 0, "hold the screen's brightness instead of adapting it"),
    Wish("system", "screen_brightness", 128, "fix the screen's brightness"),
)
_NAMESPACES = {wish.name: wish.namespace for wish in WISHES}


class State(NamedTuple):
    """A phone as it is: its screen, and the settings that are wished for."""

    screen: Screen
    settings: dict[SettingName, int | None]


class Plan(NamedTuple):
    """What will be changed: `sentences` for people, `former` for the way back."""

    sentences: tuple[str, ...]
    former: Former
    wake: bool
    unlock: bool


class Settled(NamedTuple):
    """A phone that was made fit; `notes` say what it did not let us change."""

    former: Former
    notes: tuple[str, ...]


def settle(run: RunCommand, who: str, clock: Clock, show: Callable[[tuple[str, ...]], None]) -> Settled:
    """Repair what an earlier session left, `show` what will be changed, and change it.

    Raises DeviceError: the state is faked, or the screen is locked in a way that only a person can open.
    """
    restore_leftover(run, who)
    plan = plan_changes(read_state(run, who), who)
    show(plan.sentences)
    return apply(plan, run, who, clock)


def read_state(run: RunCommand, who: str) -> State:
    """Read what may have to be changed. Raises DeviceError for a faked state, with the command that resets it."""
    read_charge(run, who)
    read_heat(run, who)
    settings = {wish.name: read_setting(run, wish.namespace, wish.name) for wish in WISHES}
    return State(_screen(run, who), settings)


def plan_changes(state: State, who: str) -> Plan:
    """Return what has to be changed. Raises DeviceError for a lock that only a person can open."""
    if state.screen.keyguard_locked:
        raise _locked(who)
    changes = [wish for wish in WISHES if not _is_met(wish, state)]
    former = Former(
        was_awake=state.screen.awake,
        settings=tuple(FormerSetting(name=w.name, former=state.settings[w.name], ours=w.value) for w in changes),
    )
    wake, unlock = state.screen.awake is not True, state.screen.keyguard_showing is not False
    sentences = [f"{wish.why} ({wish.name} {_shown(state.settings[wish.name])} → {wish.value})" for wish in changes]
    sentences += ["turn the screen on"] * wake + ["open the lock screen"] * unlock
    return Plan(tuple(sentences), former, wake, unlock)


def apply(plan: Plan, run: RunCommand, who: str, clock: Clock) -> Settled:
    """Write down what was, then change it. Raises DeviceError, with all restored, where the screen stays locked."""
    if plan.former.settings or plan.wake:
        write_former(run, plan.former)
    notes = [note for setting in plan.former.settings if (note := _change(run, setting)) is not None]
    try:
        notes += _open_screen(plan, run, who, clock)
    except DeviceError:
        # A phone that has gone cannot be restored now; the file on it stays for the next connection.
        with suppress(DeviceError):
            restore(run, plan.former)
        raise
    return Settled(plan.former, tuple(notes))


def restore(run: RunCommand, former: Former) -> tuple[str, ...]:
    """Make the phone what it was, in reverse; return a sentence for each thing done or left.

    What is neither ours nor the former value any more, somebody changed meanwhile: it stays.
    """
    sentences = _restore_settings(run, former)
    if former.was_awake is False:
        run(_SLEEP)
        sentences += ("turned the screen off",)
    return sentences


def restore_leftover(run: RunCommand, who: str) -> tuple[str, ...]:
    """Restore what a session left that ended before it could, often long ago: the screen is left as it is."""
    former = read_former(run, who)
    return () if former is None else _restore_settings(run, former)


def _restore_settings(run: RunCommand, former: Former) -> tuple[str, ...]:
    """Restore all that can be; only when nothing was refused is the way back forgotten. Raises DeviceError else."""
    sentences, refusals = [], []
    for setting in reversed(former.settings):
        try:
            sentences += _restore_one(run, setting)
        except SettingRefused as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]
    forget_former(run)
    return tuple(sentences)


def _restore_one(run: RunCommand, setting: FormerSetting) -> list[str]:
    namespace = _NAMESPACES[setting.name]
    now = read_setting(run, namespace, setting.name)
    if now == setting.former:
        return []
    if now is None or abs(now - setting.ours) > _ROUNDING.get(setting.name, 0):
        return [f"left {setting.name} at {_shown(now)}, to which somebody set it meanwhile"]
    write_setting(run, namespace, setting.name, setting.former)
    return [f"set {setting.name} back to {_shown(setting.former)}"]


def _change(run: RunCommand, setting: FormerSetting) -> str | None:
    """Change one setting, or return why the phone did not take it; what it made of it instead is undone at once."""
    namespace = _NAMESPACES[setting.name]
    try:
        write_setting(run, namespace, setting.name, setting.ours)
    except Untaken as error:
        with suppress(Untaken):
            write_setting(run, namespace, setting.name, setting.former)
        return str(error)
    return None


def _is_met(wish: Wish, state: State) -> bool:
    now = state.settings[wish.name]
    if wish.name == "low_power":
        return not now
    if wish.name == "stay_on_while_plugged_in":
        return now is not None and now & wish.value == wish.value
    return now == wish.value


def _open_screen(plan: Plan, run: RunCommand, who: str, clock: Clock) -> list[str]:
    """Wake and unlock, then look until it is so: both take their time. Return notes on what is not known."""
    if plan.wake:
        run(_WAKE)
    if plan.unlock:
        run(_OPEN)
    deadline = Deadline(_OPEN_WITHIN_S, clock)
    while (now := _screen(run, who)).awake is False or now.keyguard_showing:
        if deadline.passed():
            raise _locked(who) if now.keyguard_showing else _dark(who)
        clock.sleep(_LOOK_EVERY_S)
    unknown = [what for what, known in (("on", now.awake), ("unlocked", now.keyguard_showing)) if known is None]
    notes = [f"whether the screen is {what} cannot be read: look at it" for what in unknown]
    return notes + (["power saving is still on: switch it off in the phone's settings"] if now.low_power else [])


def _screen(run: RunCommand, who: str) -> Screen:
    reading = screen.read_screen(
        run(screen.POWER_COMMAND), run(screen.WINDOW_COMMAND), run(screen.TRUST_COMMAND), run(screen.IDLE_COMMAND)
    )
    if isinstance(reading, Unavailable):
        raise DeviceError(f"{who} does not tell the state of its screen: {reading.reason}")
    return reading


def _locked(who: str) -> DeviceError:
    return DeviceError(
        f"{who} is locked, and only a person can open its lock",
        hint="Unlock it by hand and try again; a phone of a lab needs no screen lock: Settings, Security, None.",
    )


def _dark(who: str) -> DeviceError:
    return DeviceError(f"the screen of {who} does not come on", hint="Press its power button, then try again.")


def _shown(value: int | None) -> str:
    return "unset" if value is None else str(value)
