"""Screen, lock and settings."""

from __future__ import annotations

import msgspec

from tests.phones.model_screen import Screen, Settings
from tests.phones.models_for_tests import persona_with
from tests.phones.personas import load_persona


def screen(lock: str) -> Screen:
    return Screen(persona_with(screen={"lock": lock}), 0)


def test_a_screen_without_a_lock_does_not_lock() -> None:
    one = screen("none")
    one.sleep()
    one.wake(0)
    assert one.usable


def test_a_swipe_lock_can_be_dismissed_only_with_the_screen_on() -> None:
    one = screen("swipe")
    one.sleep()
    assert not one.dismiss(0)
    one.wake(0)
    assert not one.usable
    assert one.dismiss(0)
    assert one.usable


def test_a_pin_can_be_entered_but_not_dismissed() -> None:
    one = screen("pin")
    one.sleep()
    one.wake(0)
    assert not one.dismiss(0)
    one.enter_pin()
    assert one.usable


def test_a_touch_puts_the_time_out_off() -> None:
    one = screen("swipe")
    one.wake(20_000_000_000)
    one.time_out(40_000_000_000, 30_000)
    assert one.on
    one.time_out(50_000_000_000, 30_000)
    assert not one.on


def test_settings_that_are_not_set_have_no_value_and_count_as_zero() -> None:
    settings = Settings(load_persona("pixel9"))
    assert settings.get("secure", "nix") is None
    assert settings.number("secure", "nix") == 0
    settings.put("secure", "nix", "much")
    assert settings.number("secure", "nix") == 0
    assert settings.delete("secure", "nix") == 1
    assert settings.delete("secure", "nix") == 0


def test_a_personas_settings_come_before_the_usual_ones() -> None:
    persona = msgspec.structs.replace(load_persona("pixel9"), settings={"global": {"airplane_mode_on": "1"}})
    assert Settings(persona).number("global", "airplane_mode_on") == 1
    assert Settings(persona).number("system", "screen_off_timeout") == 30_000
