"""What is wrong before anything runs: each is refused with what to do, and leaves no session behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profiler.errors import DeviceError
from tests.devices.android.faults_for_tests import CommandLine, sessions, until
from tests.devices.android.phones_for_tests import Desk
from tests.phones.android.adbd import Trust
from tests.phones.android.phone import VirtualAndroid

Fault = Callable[[VirtualAndroid], None]


@pytest.fixture
def pixel(desk: Desk) -> Iterator[VirtualAndroid]:
    with VirtualAndroid("pixel9", runner="python") as phone:
        desk.server.connect(phone.address)
        yield phone
        with contextlib.suppress(DeviceError):  # it is not connected any more
            desk.server.disconnect(phone.address)


def _shell(command: str) -> Fault:
    return lambda phone: _run(phone, command)


def _run(phone: VirtualAndroid, command: str) -> None:
    phone.commands.run(command.split())


def _lock(phone: VirtualAndroid) -> None:
    with phone.model.present():
        phone.model.screen.lock = "pin"
        phone.model.screen.sleep()


def _empty_battery(phone: VirtualAndroid) -> None:
    with phone.model.present():
        phone.model.physics.charge_c *= 0.2
    until(lambda: level(phone) < 30)  # the gauge takes its time


def level(phone: VirtualAndroid) -> int:
    with phone.model.present():
        return phone.model.reported.battery().level


def _uninstall(phone: VirtualAndroid) -> None:
    phone.apps.uninstall("org.ondeviceprofiler.runner")


def _fill(phone: VirtualAndroid) -> None:
    phone.fill_storage(leaving_bytes=3 << 20)


REFUSED = {
    "offline": (lambda phone: phone.go_offline(), ["listed but offline", "Replug the cable"]),
    "zombie": (lambda phone: phone.become_zombie(), ["does not answer", "restart the phone"]),
    "hung shell": (lambda phone: phone.hang_shell(), ["does not answer", "restart the phone"]),
    "PIN": (_lock, ["is locked, and only a person can open its lock", "Unlock it by hand"]),
    "battery override": (_shell("dumpsys battery set level 55"), ["dumpsys battery reset"]),
    "thermal override": (_shell("cmd thermalservice override-status 0"), ["cmd thermalservice reset"]),
    "empty battery": (_empty_battery, ["below 30 %", "Charge it"]),
    "no app": (_uninstall, ["is not installed", "profile install"]),
    "full disk": (_fill, ["has 3.00 MiB free", "needs 25.0 KiB more", "Delete files"]),
}


@pytest.mark.parametrize(("fault", "words"), REFUSED.values(), ids=REFUSED)
def test_a_phone_that_cannot_be_measured_is_refused_with_what_to_do(
    profile: CommandLine, desk: Desk, pixel: VirtualAndroid, small_bundle: Path, fault: Fault, words: list[str]
) -> None:
    fault(pixel)
    said = profile.measure(pixel, small_bundle)
    assert said.code == 3
    assert [word for word in words if word not in said.text] == []
    assert sessions(desk.store) == []
    assert pixel.apps.running() == {}


def test_a_phone_that_is_not_there_is_asked_for(
    profile: CommandLine, desk: Desk, pixel: VirtualAndroid, small_bundle: Path
) -> None:
    pixel.unplug()
    desk.server.disconnect(pixel.address)
    said = profile.measure(pixel, small_bundle)
    assert said.code == 3
    assert "no phone is connected Plug one in with USB debugging switched on" in said.text
    assert sessions(desk.store) == []


def test_a_phone_that_waits_for_consent_says_where_to_give_it(
    profile: CommandLine, desk: Desk, small_bundle: Path
) -> None:
    with VirtualAndroid("pixel9", trust=Trust.ASKS) as phone:
        with pytest.raises(DeviceError, match="failed to authenticate"):
            desk.server.connect(phone.address)
        said = profile.run("--device", "android", "--bundle", str(small_bundle))
        assert said.code == 3
        assert "Allow USB debugging" in said.text
        assert sessions(desk.store) == []


RESETS = {
    "battery": ("dumpsys battery set level 55", "dumpsys battery reset"),
    "thermal": ("cmd thermalservice override-status 3", "cmd thermalservice reset"),
}


@pytest.mark.parametrize(("fake", "reset"), RESETS.values(), ids=RESETS)
def test_the_command_that_is_named_makes_the_phone_fit_again(
    desk: Desk, pixel: VirtualAndroid, fake: str, reset: str
) -> None:
    with desk.device(pixel) as device:
        device.shell.check(fake)
        with pytest.raises(DeviceError, match=f"adb shell {reset}"):
            device.unit()
        device.shell.check(reset)
        assert device.unit().profile == "pixel9"


@pytest.mark.parametrize("persona", ["pixel9", "old-api29"])
def test_a_shell_that_hangs_is_given_up_by_its_deadline_and_named(desk: Desk, persona: str) -> None:
    with VirtualAndroid(persona) as phone, desk.device(phone) as device:
        phone.hang_shell()
        with pytest.raises(DeviceError, match="'dumpsys battery'") as caught:
            device.shell.once("dumpsys battery", deadline_s=0.3)
        phone.unhang_shell()
    assert "0.3 s" in str(caught.value)
