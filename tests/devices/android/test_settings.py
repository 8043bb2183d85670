from __future__ import annotations

import pytest

from profiler.devices.android.settings import Untaken, read_setting, write_setting
from profiler.errors import DeviceError
from tests.devices.android.scripted_for_tests import ScriptedPhone


@pytest.mark.parametrize(("answer", "value"), [("128\r\n", 128), ("null\n", None), ("-1", -1)])
def test_a_setting_is_a_number_or_unset(answer: str, value: int | None) -> None:
    assert read_setting(lambda _: answer, "system", "x") == value


@pytest.mark.parametrize("answer", ["", "cmd: Can't find service: settings\n", "true\n"])
def test_any_other_answer_is_an_error(answer: str) -> None:
    with pytest.raises(DeviceError, match="does not tell its setting x"):
        read_setting(lambda _: answer, "system", "x")


def test_a_setting_is_written_and_read_back() -> None:
    phone = ScriptedPhone([("settings put system x 5", ""), ("settings get system x", "5\n")])
    write_setting(phone.run, "system", "x", 5)
    phone.finish()


def test_an_unset_one_is_deleted() -> None:
    phone = ScriptedPhone([("settings delete system x", "Deleted 1 rows\n"), ("settings get system x", "null\n")])
    write_setting(phone.run, "system", "x", None)
    phone.finish()


def test_a_refusal_keeps_the_phones_words_and_what_it_is_instead() -> None:
    denial = "Exception occurred while executing 'put':\njava.lang.SecurityException: Permission denial: writing\n"
    phone = ScriptedPhone([("settings put system x 5", denial), ("settings get system x", "4\n")])
    with pytest.raises(Untaken, match="Permission denial: writing") as caught:
        write_setting(phone.run, "system", "x", 5)
    assert caught.value.now == 4
    phone.finish()
