"""Phones for tests of what is said to them: one that expects a transcript, and one with settings and a real shell."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from profiler.devices.android.former import FOLDER
from profiler.errors import DeviceError
from tests.devices.android.captures_for_tests import capture

AWAKE = "mWakefulness=Awake\nBattery Saver is currently: OFF\n"
ASLEEP = "mWakefulness=Asleep\nBattery Saver is currently: OFF\n"
OPEN = "isKeyguardShowing=false\n"
SHOWING = "isKeyguardShowing=true\n"
COOL = "HAL Ready: true\nThermal Status: 0\nCurrent temperatures from HAL:\n"


class ScriptedPhone:
    """Answers exactly the commands of a transcript, in order."""

    def __init__(self, transcript: Iterable[tuple[str, str]]) -> None:
        self._left = list(transcript)

    def run(self, command: str) -> str:
        """Answer the next command."""
        assert self._left, f"nothing more was expected, but came: {command}"
        expected, answer = self._left.pop(0)
        assert command == expected
        return answer

    def finish(self) -> None:
        """Fail if something was expected that did not come."""
        assert self._left == []


class SettingsPhone:
    """Holds settings and a screen; whatever else is said to it, a real shell does in a folder of its own."""

    def __init__(self, folder: Path, settings: dict[str, str], *, awake: bool = True, locked: bool = False) -> None:
        self.settings = dict(settings)
        self.awake = awake
        self.keyguard = not awake
        self.locked = locked
        self.dark = False
        self.stubborn: dict[str, str] = {}
        self.longest_timeout = 2**31 - 1
        self.battery = capture("battery_aosp_15")
        self.thermal = COOL
        self.sent: list[str] = []
        self.commands_left: int | None = None
        self._folder = folder

    def run(self, command: str) -> str:
        """Obey one command; raise as a connection does when the phone is to be gone by now."""
        if self.commands_left is not None:
            if self.commands_left == 0:
                raise DeviceError("the phone has gone")
            self.commands_left -= 1
        self.sent.append(command)
        setting = re.fullmatch(r"settings (get|put|delete) \w+ (\w+) ?(.*)", command)
        if setting:
            return self._setting(*setting.groups())
        return self._service(command) if FOLDER not in command else self._shell(command)

    def _setting(self, verb: str, name: str, value: str) -> str:
        if verb == "get":
            return self.settings.get(name, "null") + "\n"
        if name in self.stubborn:
            self.settings[name] = self.stubborn[name]
            return "java.lang.SecurityException: Permission denial: writing to settings\n"
        if verb == "put":
            longest = self.longest_timeout if name == "screen_off_timeout" else 2**31 - 1
            self.settings[name] = str(min(int(value), longest))
        else:
            self.settings.pop(name, None)
        return ""

    def _service(self, command: str) -> str:
        if command == "input keyevent KEYCODE_WAKEUP":
            self.awake = not self.dark
        elif command == "input keyevent KEYCODE_SLEEP":
            self.awake, self.keyguard = False, True
        elif command == "wm dismiss-keyguard":
            self.keyguard = self.keyguard and self.locked
        answers = {
            "dumpsys battery": self.battery,
            "dumpsys thermalservice": self.thermal,
            "dumpsys power": AWAKE if self.awake else ASLEEP,
            "dumpsys window policy": SHOWING if self.keyguard else OPEN,
        }
        return answers.get(command, "")

    def _shell(self, command: str) -> str:
        local = command.replace(FOLDER, str(self._folder))
        # As the product runs commands: what stands behind one holds for all of it.
        done = subprocess.run(["/bin/sh", "-c", f"{local} 2>&1"], stdout=subprocess.PIPE, text=True, check=False)
        return done.stdout.replace(str(self._folder), FOLDER)
