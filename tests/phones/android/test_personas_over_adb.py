"""Phones unlike the newest one, and a phone on a machine where we are not root."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.phones.adb_server import Adb
from tests.phones.android.packages import write_apk
from tests.phones.android.phones_for_tests import Seen, connected
from tests.phones.personas import load_persona, persona_names

TMP = "/data/local/tmp"


@pytest.mark.parametrize("name", persona_names())
def test_every_persona_is_connected_to_and_says_who_it_is(adb36: Adb, name: str) -> None:
    with connected(adb36, name) as seen:
        persona = load_persona(name)
        said = seen.shell("getprop ro.serialno; getprop ro.build.version.sdk; getprop ro.profiler.virtual").stdout
        assert said.split() == [persona.system.serial, str(persona.system.api), "1"]


@pytest.fixture(scope="module")
def old(adb: Adb) -> Iterator[Seen]:
    with connected(adb, "old-api29") as seen:
        yield seen


def test_an_old_phone_offers_nothing(old: Seen) -> None:
    assert old.run("features").stdout.split() == []


def test_an_old_phones_shell_has_no_exit_code_and_mixes_what_is_printed(old: Seen) -> None:
    assert old.shell("echo out; echo err >&2; exit 3").stdout == "out\nerr\n"


def test_an_old_phone_takes_files_and_packages(old: Seen, tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000  # several of its small packets, each of which is summed up
    (tmp_path / "file").write_bytes(content)
    assert old.run("push", str(tmp_path / "file"), f"{TMP}/file").code == 0
    assert old.run("pull", f"{TMP}/file", str(tmp_path / "back")).code == 0
    assert (tmp_path / "back").read_bytes() == content
    assert "Success" in old.run("install", str(write_apk(tmp_path / "a.apk", "org.example.app", 1))).text
    denied = old.run("push", str(tmp_path / "file"), "/system/file").text
    assert "couldn't create file: Permission denied" in denied


def test_without_root_device_paths_are_rewritten(adb36: Adb, tmp_path: Path) -> None:
    with connected(adb36, entered=False) as seen:
        (tmp_path / "file").write_text("hello")
        assert seen.run("push", str(tmp_path / "file"), f"{TMP}/a file").code == 0
        moved = seen.shell(f"mv '{TMP}/a file' /sdcard/x; ls {TMP}; ls /sdcard/x; cat /sdcard/x")
        assert moved.stdout == "/sdcard/x\nhello"
        assert seen.shell("getprop ro.serialno").stdout.strip() == seen.phone.serial
        assert seen.run("shell", stdin=b"cat /sdcard/x; exit 4\n") == ("hello", "", 4)
        assert "MemTotal" in seen.shell("cat /proc/meminfo").stdout


def test_a_terminal_is_one(adb36: Adb) -> None:
    with connected(adb36) as seen:
        assert seen.run("shell", "-tt", "tty; exit 6").code == 6
