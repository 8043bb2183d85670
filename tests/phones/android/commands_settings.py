"""What changes the phone's settings and screen: settings, svc, cmd, input, wm, locksettings."""

from __future__ import annotations

from collections.abc import Sequence

from tests.phones.android.apps_contract import Apps
from tests.phones.android.commands_answer import Answer, complained, said
from tests.phones.model import DeviceModel

# BatteryManager.BATTERY_PLUGGED_ANY: ac, usb, wireless, and the dock since Android 13.
_STAY_ON = {"ac": 1, "usb": 2, "wireless": 4, "dock": 8, "false": 0}
_KEYS = {"POWER": 26, "MENU": 82, "SLEEP": 223, "WAKEUP": 224, "ENTER": 66, "HOME": 3, "BACK": 4}


def settings(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Read and write the settings tables; a key that is not set reads `null`."""
    words = _without_user(words)
    if len(words) > 1 and words[1] not in model.settings.namespaces:
        return complained(f"Invalid namespace '{words[1]}'", 255)
    with model.present():
        match words:
            case ["get", table, key]:
                value = model.settings.get(table, key)
                return said("null" if value is None else value)
            case ["put", table, key, value, *_]:
                model.settings.put(table, key, value)
                return said("")
            case ["delete", table, key]:
                return said(f"Deleted {model.settings.delete(table, key)} rows")
            case ["list", table]:
                return said("\n".join(f"{key}={value}" for key, value in sorted(model.settings.listed(table).items())))
    return complained("Bad arguments\nSettings provider (settings) commands:\n  help", 255)


def svc(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Keep the screen on while plugged in; switch Wi-Fi."""
    match list(words):
        case ["power", "stayon", which] if which == "true" or which in _STAY_ON:
            everything = 15 if model.persona.system.api >= 33 else 7
            value = everything if which == "true" else _STAY_ON[which]
            with model.present() as now_ns:
                model.settings.put("global", "stay_on_while_plugged_in", str(value))
                if value:
                    model.screen.wake(now_ns)  # it wakes the phone up as well
            return said("")
        case ["wifi", "enable" | "disable" as order]:
            with model.present():
                model.settings.put("global", "wifi_on", "1" if order == "enable" else "0")
            return said("")
    return complained("usage: svc power stayon [true|false|usb|ac|wireless|dock]\n       svc wifi [enable|disable]", 0)


def cmd_power(model: DeviceModel, words: Sequence[str]) -> Answer:
    """Switch battery saver and fixed performance, where the phone has it."""
    match list(words):
        case ["set-mode", "0" | "1" as mode]:
            with model.present():
                plugged = bool(model.reported.battery().plugged)
                model.settings.put("global", "low_power", "0" if plugged else mode)
            return said("")
        case ["set-fixed-performance-mode-enabled", "true" | "false" as order]:
            if model.persona.power.fixed_performance_clock is None:
                return complained(
                    "Failed to set FIXED_PERFORMANCE mode\nThis is likely because it is not supported", 255
                )
            with model.present():
                model.physics.fixed_performance = order == "true"
            return said("")
    return complained("Power manager (power) commands:\n  help\n    Print this help text.", 255)


def input_(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Press keys that wake, darken or unlock the phone; a swipe opens a lock without a secret."""
    words = [word for word in words if word not in ("keyboard", "touchscreen", "--longpress")]
    with model.present() as now_ns:
        match words:
            case ["keyevent", *keys] if keys and all(_key(key) is not None for key in keys):
                for key in keys:
                    _press(model, _key(key) or 0, now_ns)
            case ["keyevent", *_]:
                return complained("Error: Unknown keycode", 255)
            case ["swipe", *_] if model.screen.on:
                model.screen.dismiss(now_ns)
            case ["swipe" | "tap" | "text", *_]:
                pass
            case _:
                return complained("Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]", 255)
    return said("")


def wm(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Ask for the keyguard to go; it stays where it guards a secret, and nothing is said either way."""
    match list(words):
        case ["dismiss-keyguard"]:
            with model.present() as now_ns:
                model.screen.dismiss(now_ns)
            return said("")
        case ["size"]:
            return said("Physical size: 1080x2424")
    return complained("Window manager (window) commands:\n  help", 255)


def locksettings(model: DeviceModel, apps: Apps, words: Sequence[str]) -> Answer:
    """Tell whether there is a lock screen at all."""
    match list(words):
        case ["get-disabled"]:
            return said("true" if model.screen.lock == "none" else "false")
        case ["verify", *_]:
            fine = model.screen.lock != "pin"
            return said(
                "Lock credential verified successfully" if fine else "Old password '' didn't match", 0 if fine else 255
            )
    return complained("lockSettings service commands:\n\n  help", 255)


def _key(text: str) -> int | None:
    return int(text) if text.isdigit() else _KEYS.get(text.removeprefix("KEYCODE_"))


def _press(model: DeviceModel, key: int, now_ns: int) -> None:
    screen = model.screen
    if key == _KEYS["WAKEUP"] or (key == _KEYS["POWER"] and not screen.on):
        screen.wake(now_ns)
    elif key in (_KEYS["SLEEP"], _KEYS["POWER"]):
        screen.sleep()
    elif key == _KEYS["MENU"] and screen.on:
        screen.dismiss(now_ns)
    elif key == _KEYS["HOME"] and screen.usable:
        for process in model.memory.processes.values():
            process.foreground = False


def _without_user(words: Sequence[str]) -> list[str]:
    words = list(words)
    if "--user" in words:
        at = words.index("--user")
        del words[at : at + 2]
    return words
