from __future__ import annotations

from pathlib import Path

import pytest

from profiler.devices.android.former import FILE, Former, FormerSetting, forget_former, read_former, write_former
from profiler.errors import DeviceError
from tests.devices.android.scripted_for_tests import ScriptedPhone, SettingsPhone

FORMER = Former(was_awake=False, settings=(FormerSetting(name="screen_brightness", former=None, ours=128),))


def test_what_was_is_read_back_and_forgotten(tmp_path: Path) -> None:
    phone = SettingsPhone(tmp_path / "phone", {})
    assert read_former(phone.run, "Pixel") is None
    write_former(phone.run, FORMER)
    assert read_former(phone.run, "Pixel") == FORMER
    assert [path.name for path in (tmp_path / "phone").iterdir()] == ["restore.json"]
    forget_former(phone.run)
    assert read_former(phone.run, "Pixel") is None


@pytest.mark.parametrize("answer", ["", "sh: can't create: No space left on device\n", '{"was_awake"'])
def test_a_phone_that_does_not_hold_it_is_an_error(answer: str) -> None:
    with pytest.raises(DeviceError, match="cannot keep"):
        write_former(lambda _: answer, FORMER)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema_version":1,"was_awake":true,"settings":[{"name":"adb","former":1,"ours":0}]}', "x"]
)
def test_a_file_that_cannot_be_read_says_what_to_do(text: str) -> None:
    phone = ScriptedPhone([(f"[ ! -e {FILE} ] || cat {FILE}", text)])
    with pytest.raises(DeviceError, match=f"adb shell rm {FILE}"):
        read_former(phone.run, "Pixel")
    phone.finish()


def test_a_phone_whose_dd_cannot_flush_holds_it_too(tmp_path: Path) -> None:
    phone = SettingsPhone(tmp_path / "phone", {})
    write_former(lambda command: phone.run(command.replace("dd of=", "dd nonsense=1 of=")), FORMER)
    assert read_former(phone.run, "Pixel") == FORMER
