"""Screen and settings of a phone: on or off, locked or not, and the three tables that the settings command shows."""

from __future__ import annotations

import hashlib

from tests.phones.personas import Persona

_COMMON_SETTINGS: dict[str, dict[str, str]] = {
    "system": {"screen_brightness_mode": "1", "font_scale": "1.0", "accelerometer_rotation": "0"},
    "global": {
        "stay_on_while_plugged_in": "0",
        "low_power": "0",
        "airplane_mode_on": "0",
        "wifi_on": "1",
        "adb_enabled": "1",
        "development_settings_enabled": "1",
        "device_provisioned": "1",
        "zen_mode": "0",
        "auto_time": "1",
        "auto_time_zone": "1",
    },
    "secure": {"user_setup_complete": "1", "location_mode": "3", "screensaver_enabled": "1"},
}


class Settings:
    """The tables system, global and secure; values are text, as on a phone."""

    namespaces = ("system", "global", "secure")

    def __init__(self, persona: Persona) -> None:
        self._tables = {name: dict(_COMMON_SETTINGS[name]) for name in self.namespaces}
        self._tables["system"]["screen_brightness"] = str(persona.screen.brightness)
        self._tables["system"]["screen_off_timeout"] = str(persona.screen.timeout_ms)
        # Two phones of one kind differ in it, and a phone keeps its own.
        self._tables["secure"]["android_id"] = hashlib.sha256(persona.system.serial.encode()).hexdigest()[:16]
        self._tables["global"]["device_name"] = persona.prop("ro.product.model")
        for name, values in persona.settings.items():
            self._tables[name].update(values)

    def get(self, namespace: str, key: str) -> str | None:
        """Return a value, None where it is not set."""
        return self._tables[namespace].get(key)

    def number(self, namespace: str, key: str) -> int:
        """Return a value as a number, 0 where it is none."""
        text = self.get(namespace, key) or ""
        return int(text) if text.lstrip("-").isdigit() else 0

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value."""
        self._tables[namespace][key] = value

    def delete(self, namespace: str, key: str) -> int:
        """Take a value away and return how many rows that were."""
        return 0 if self._tables[namespace].pop(key, None) is None else 1

    def listed(self, namespace: str) -> dict[str, str]:
        """Return a whole table."""
        return dict(self._tables[namespace])


class Screen:
    """The screen and its lock; dark screens lock, a PIN cannot be dismissed from outside."""

    def __init__(self, persona: Persona, now_ns: int) -> None:
        self.lock = persona.screen.lock
        self.on = True
        self.locked = False
        self.keep_on = False
        self._touched_ns = now_ns

    @property
    def usable(self) -> bool:
        """Tell whether an app can be in the foreground."""
        return self.on and not self.locked

    def wake(self, now_ns: int) -> None:
        """Switch it on."""
        self.on = True
        self._touched_ns = now_ns

    def sleep(self) -> None:
        """Switch it off, which locks it."""
        self.on = False
        self.locked = self.lock != "none"

    def dismiss(self, now_ns: int) -> bool:
        """Unlock it if that needs no secret, and tell whether it is unlocked now."""
        if self.on and self.lock != "pin":
            self.locked = False
        self._touched_ns = now_ns
        return not self.locked

    def enter_pin(self) -> None:
        """Unlock it by the owner's hand."""
        self.on, self.locked = True, False

    def time_out(self, now_ns: int, timeout_ms: int) -> None:
        """Switch it off when nobody touched it for long."""
        if self.keep_on:
            self._touched_ns = now_ns
        elif self.on and now_ns - self._touched_ns >= timeout_ms * 1_000_000:
            self.sleep()
