from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiler.clock import FakeClock
from profiler.devices.android.former import FILE
from profiler.devices.android.screen import Screen
from profiler.devices.android.settle import (
    WISHES,
    State,
    apply,
    plan_changes,
    read_state,
    restore,
    restore_leftover,
    settle,
)
from profiler.errors import DeviceError
from tests.devices.android.captures_for_tests import capture
from tests.devices.android.scripted_for_tests import AWAKE, COOL, OPEN, SHOWING, ScriptedPhone, SettingsPhone

EVERYDAY = {
    "low_power": "1",
    "stay_on_while_plugged_in": "0",
    "screen_off_timeout": "30000",
    "screen_brightness_mode": "1",
    "screen_brightness": "77",
}
OURS = {wish.name: str(wish.value) for wish in WISHES}


def everyday(tmp_path: Path, *, awake: bool = True, locked: bool = False) -> SettingsPhone:
    return SettingsPhone(tmp_path / "phone", EVERYDAY, awake=awake, locked=locked)


def reading(power: str, window: str, trust: str = "") -> list[tuple[str, str]]:
    return [
        ("dumpsys power", power),
        ("dumpsys window policy", window),
        ("dumpsys trust", trust),
        ("dumpsys deviceidle", ""),
    ]


def fit() -> list[tuple[str, str]]:
    gets = [(f"settings get {wish.namespace} {wish.name}", f"{wish.value}\n") for wish in WISHES]
    return [("dumpsys battery", capture("battery_aosp_15")), ("dumpsys thermalservice", COOL), *gets]


def test_a_phone_that_is_fit_is_only_read() -> None:
    phone = ScriptedPhone(
        [(f"[ ! -e {FILE} ] || cat {FILE}", ""), *fit(), *reading(AWAKE, OPEN), *reading(AWAKE, OPEN)]
    )
    shown: list[tuple[str, ...]] = []
    settled = settle(phone.run, "Pixel", FakeClock(), shown.append)
    phone.finish()
    assert shown == [()]
    assert settled.notes == ()


def test_a_sleeping_phone_is_woken_opened_and_looked_at_until_it_is_open() -> None:
    asleep = "mWakefulness=Asleep\n"
    state = State(
        Screen("asleep", False, True, False, None, None, None, None, False), {w.name: w.value for w in WISHES}
    )
    plan = plan_changes(state, "Pixel")
    assert plan.sentences == ("turn the screen on", "open the lock screen")
    clock = FakeClock()
    sent: list[str] = []
    answers = iter([*reading(asleep, SHOWING), *reading(AWAKE, SHOWING), *reading(AWAKE, OPEN)])

    def run(command: str) -> str:
        sent.append(command)
        if FILE in command:
            return command.split("J='")[1].split("'; ")[0]
        return "" if command.startswith(("input", "wm")) else next(answers)[1]

    apply(plan, run, "Pixel", clock)
    assert sent[1:3] == ["input keyevent KEYCODE_WAKEUP", "wm dismiss-keyguard"]
    assert clock.boot_ns() == 500_000_000


def test_what_will_be_changed_is_shown_before_anything_is(tmp_path: Path) -> None:
    phone = everyday(tmp_path, awake=False)
    shown: list[tuple[str, ...]] = []

    def show(sentences: tuple[str, ...]) -> None:
        assert phone.settings == EVERYDAY
        assert not phone.awake
        shown.append(sentences)

    settle(phone.run, "Pixel", FakeClock(), show)
    assert shown == [
        (
            "switch power saving off (low_power 1 → 0)",
            "keep the screen on while it is plugged in (stay_on_while_plugged_in 0 → 7)",
            "keep the screen on when it is not (screen_off_timeout 30000 → 2147483647)",
            "hold the screen's brightness instead of adapting it (screen_brightness_mode 1 → 0)",
            "fix the screen's brightness (screen_brightness 77 → 128)",
            "turn the screen on",
            "open the lock screen",
        )
    ]
    assert phone.settings == OURS
    assert (phone.awake, phone.keyguard) == (True, False)


def test_everything_is_restored_and_nothing_is_left_on_the_phone(tmp_path: Path) -> None:
    phone = everyday(tmp_path, awake=False)
    settled = settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert (tmp_path / "phone" / "restore.json").exists()
    restore(phone.run, settled.former)
    assert phone.settings == EVERYDAY
    assert not phone.awake
    assert list((tmp_path / "phone").iterdir()) == []


def test_the_reported_battery_state_and_thermal_status_are_never_written(tmp_path: Path) -> None:
    phone = everyday(tmp_path, awake=False)
    restore(phone.run, settle(phone.run, "Pixel", FakeClock(), lambda _: None).former)
    assert not [command for command in phone.sent if command.startswith(("dumpsys battery ", "cmd "))]


@given(
    before=st.fixed_dictionaries({}, optional={name: st.integers(0, 2**31 - 1).map(str) for name in EVERYDAY}),
    awake=st.booleans(),
    gone_after=st.integers(0, 45),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whenever_the_phone_goes_it_is_repaired_when_it_comes_back(
    tmp_path_factory: pytest.TempPathFactory, before: dict[str, str], awake: bool, gone_after: int
) -> None:
    phone = SettingsPhone(tmp_path_factory.mktemp("phone"), before, awake=awake)
    phone.commands_left = gone_after
    try:
        settled = settle(phone.run, "Pixel", FakeClock(), lambda _: None)
        restore(phone.run, settled.former)
    except DeviceError:
        phone.commands_left = None
        restore_leftover(phone.run, "Pixel")
    assert phone.settings == before
    phone.commands_left = None
    assert restore_leftover(phone.run, "Pixel") == ()


def test_a_second_session_after_a_crash_keeps_the_first_ones_former_values(tmp_path: Path) -> None:
    phone = everyday(tmp_path)
    settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    restore(phone.run, settle(phone.run, "Pixel", FakeClock(), lambda _: None).former)
    assert phone.settings == EVERYDAY


def test_what_somebody_changed_meanwhile_stays(tmp_path: Path) -> None:
    phone = everyday(tmp_path)
    settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    phone.settings["screen_off_timeout"] = "60000"
    phone.settings["stay_on_while_plugged_in"] = "6"
    phone.settings["screen_brightness"] = "127"  # Android's own rounding
    sentences = restore_leftover(phone.run, "Pixel")
    assert phone.settings == {**EVERYDAY, "screen_off_timeout": "60000", "stay_on_while_plugged_in": "6"}
    assert "left screen_off_timeout at 60000, to which somebody set it meanwhile" in sentences


def test_a_setting_that_was_never_set_is_unset_again(tmp_path: Path) -> None:
    phone = SettingsPhone(tmp_path / "phone", {})
    settled = settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert phone.settings == {name: value for name, value in OURS.items() if name != "low_power"}
    restore(phone.run, settled.former)
    assert phone.settings == {}


def test_a_setting_that_the_phone_does_not_take_is_a_note_with_what_to_do(tmp_path: Path) -> None:
    phone = everyday(tmp_path)
    phone.stubborn = {"low_power": "1"}
    settled = settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert len(settled.notes) == 1
    assert "Permission denial" in settled.notes[0]
    assert "Security settings" in settled.notes[0]
    restore(phone.run, settled.former)
    assert phone.settings == EVERYDAY


def test_a_value_that_the_phone_makes_of_ours_is_undone_where_it_lets_us(tmp_path: Path) -> None:
    phone = everyday(tmp_path)
    phone.longest_timeout = 600_000
    settled = settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert "it is 600000 instead" in settled.notes[0]
    assert phone.settings["screen_off_timeout"] == "30000"
    restore(phone.run, settled.former)
    assert phone.settings == EVERYDAY


def test_what_cannot_be_restored_is_an_error_and_stays_to_be_tried_again(tmp_path: Path) -> None:
    phone = everyday(tmp_path)
    settled = settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    phone.stubborn = {"screen_brightness": "128"}
    with pytest.raises(DeviceError, match="screen_brightness"):
        restore(phone.run, settled.former)
    assert phone.settings == {**EVERYDAY, "screen_brightness": "128"}
    phone.stubborn = {}
    restore_leftover(phone.run, "Pixel")
    assert phone.settings == EVERYDAY


def test_a_screen_that_stays_dark_says_so_and_everything_is_restored(tmp_path: Path) -> None:
    phone = everyday(tmp_path, awake=False)
    phone.dark = True
    with pytest.raises(DeviceError, match="screen of Pixel does not come on"):
        settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert phone.settings == EVERYDAY


def test_a_phone_that_cannot_hold_the_way_back_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "phone").write_text("a file where the folder should be")
    phone = everyday(tmp_path)
    with pytest.raises(DeviceError, match=r"cannot keep .*(File exists|not a directory|Not a directory)"):
        settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert phone.settings == EVERYDAY


@pytest.mark.parametrize("trust", [' User "a" (id=0) (current): deviceLocked=1\n'])
def test_a_lock_that_only_a_person_can_open_is_refused_before_anything_is_changed(trust: str) -> None:
    gets = [(command, "1\n") for command, _ in fit()[2:]]
    phone = ScriptedPhone([*fit()[:2], *gets, *reading(AWAKE, SHOWING, trust)])
    with pytest.raises(DeviceError, match=r"Pixel is locked(.|\n)*Unlock it by hand"):
        plan_changes(read_state(phone.run, "Pixel"), "Pixel")
    phone.finish()


def test_a_lock_that_shows_only_when_it_is_tried_restores_everything(tmp_path: Path) -> None:
    phone = everyday(tmp_path, awake=False, locked=True)
    with pytest.raises(DeviceError, match="Pixel is locked"):
        settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert phone.settings == EVERYDAY
    assert list((tmp_path / "phone").iterdir()) == []


@pytest.mark.parametrize(
    ("battery", "thermal", "reset"),
    [
        (capture("battery_override_active"), COOL, "adb shell dumpsys battery reset"),
        (capture("battery_aosp_15"), capture("thermal_override_active"), "adb shell cmd thermalservice reset"),
    ],
)
def test_a_faked_state_is_refused_with_the_command_that_resets_it(
    tmp_path: Path, battery: str, thermal: str, reset: str
) -> None:
    phone = everyday(tmp_path)
    phone.battery, phone.thermal = battery, thermal
    with pytest.raises(DeviceError, match=reset):
        settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert phone.settings == EVERYDAY


def test_a_phone_that_does_not_tell_its_settings_is_not_changed(tmp_path: Path) -> None:
    phone = everyday(tmp_path)
    phone.settings["screen_brightness"] = "cmd: Can't find service: settings"
    with pytest.raises(DeviceError, match="does not tell its setting screen_brightness"):
        settle(phone.run, "Pixel", FakeClock(), lambda _: None)
    assert phone.settings["low_power"] == "1"
