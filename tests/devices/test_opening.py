from __future__ import annotations

from pathlib import Path

import pytest

from profiler.catalog import device_profile
from profiler.clock import FakeClock
from profiler.devices.android.adb import Server
from profiler.devices.android.listing import Listed
from profiler.devices.android.phones import Phone
from profiler.devices.opening import Known, choose, open_device, opened, unit_id_of
from profiler.errors import DeviceError, InputError, UnknownName
from profiler.records.device import GENERIC_PHONE


def known(serial: str, profile: str | None = "pixel9", state: str = "device") -> Known:
    way = Listed(f"127.0.0.1:{serial}", state, 1, {})
    return Known(Phone(serial, state, (way,)), None if profile is None else device_profile(profile))


PIXEL, GALAXY, SHY = known("4A17"), known("R5CX", "galaxy-s24"), known("9B22", None, "unauthorized")


def test_the_one_phone_of_a_profile_is_meant_by_its_name() -> None:
    assert choose([GALAXY, PIXEL, SHY], device_profile("pixel9"), None) == PIXEL


def test_any_phone_is_meant_by_the_generic_name() -> None:
    assert choose([GALAXY], device_profile(GENERIC_PHONE), None) == GALAXY


@pytest.mark.parametrize("serial", ["4A17", "127.0.0.1:4A17"])
def test_a_serial_tells_two_alike_apart(serial: str) -> None:
    assert choose([PIXEL, known("4A18")], device_profile("pixel9"), serial) == PIXEL


@pytest.mark.parametrize(
    ("phones", "wanted", "serial", "says", "next_step"),
    [
        ([], "pixel9", None, "no phone is connected", "USB debugging"),
        ([PIXEL, known("4A18")], "pixel9", None, "2 phones may be meant: 4A17, 4A18", "--serial"),
        ([GALAXY], "pixel9", None, "no Google Pixel 9 is ready; connected: R5CX", "--device galaxy-s24"),
        ([SHY], "pixel9", None, "9B22, which does not trust this computer yet", "Allow USB debugging"),
        ([SHY], GENERIC_PHONE, None, "no phone is ready; connected: 9B22", "Allow USB debugging"),
        ([PIXEL], "pixel9", "NOPE", "no Google Pixel 9 with the serial NOPE is ready; connected: 4A17", "pixel9"),
    ],
)
def test_an_unclear_choice_says_who_is_there_and_what_to_do(
    phones: list[Known], wanted: str, serial: str | None, says: str, next_step: str
) -> None:
    with pytest.raises(DeviceError) as caught:
        choose(phones, device_profile(wanted), serial)
    assert says in str(caught.value)
    assert next_step in str(caught.value)


def test_a_unit_id_does_not_give_the_serial_away() -> None:
    assert unit_id_of("4A17") != unit_id_of("4A18")
    assert len(unit_id_of("4A17")) == 12
    assert "4A17" not in unit_id_of("4A17")


def test_this_machine_needs_no_adb_and_takes_no_serial(tmp_path: Path) -> None:
    assert open_device("local", FakeClock()).profile.name == "local"
    with pytest.raises(InputError, match="--serial names a phone"):
        open_device("local", FakeClock(), "4A17")
    with pytest.raises(UnknownName):
        open_device("pixel99", FakeClock())


@pytest.mark.parametrize("made", ["units", "units/{}.lock/in-the-way"])
def test_where_no_phone_can_be_noted_as_taken_it_says_what_to_do(tmp_path: Path, made: str) -> None:
    obstacle = tmp_path / made.format(PIXEL.unit_id)
    obstacle.parent.mkdir(parents=True, exist_ok=True)
    obstacle.touch()
    with pytest.raises(DeviceError, match="cannot note that phone 4A17 is in use") as caught:
        opened(PIXEL, Server(environment={}), FakeClock(), tmp_path / "units")
    assert "XDG_CACHE_HOME" in str(caught.value)
