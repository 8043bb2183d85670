"""What a person types to a virtual phone."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.phones.android.console import DOINGS, help_text, obey, state_of
from tests.phones.android.phone import VirtualAndroid


@pytest.fixture(scope="module")
def phone() -> Iterator[VirtualAndroid]:
    with VirtualAndroid("pixel9", runner=lambda launching: ("sleep", "600")) as phone:
        yield phone


def run(*arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program with what is typed."""
    command = [sys.executable, "-m", "tests.phones.android", *arguments]
    return subprocess.run(command, input=typed, capture_output=True, text=True, timeout=60)


def test_every_word_is_explained() -> None:
    assert all(f"  {name}" in help_text() for name in DOINGS)


def test_the_cable_is_pulled_and_put_back(phone: VirtualAndroid) -> None:
    assert "adb off" in (obey(phone, "unplug\n") or "")
    assert phone.model.physics.plug == "none"
    assert "on usb" in (obey(phone, "plug\n") or "")
    assert phone.adbd.listening


def test_heat_charge_clock_and_storage_are_set(phone: VirtualAndroid) -> None:
    assert "skin 45.0" in (obey(phone, "heat 45") or "")
    assert "battery 20 %" in (obey(phone, "charge 20\n") or "") or phone.model.physics.charge_c > 0
    obey(phone, "fill 7")
    assert phone.model.storage.free_bytes == 7_000_000
    wall_ns = phone.model.wall_ns()
    obey(phone, "jump -3600")
    assert phone.model.wall_ns() < wall_ns


def test_the_screen_is_locked_and_unlocked(phone: VirtualAndroid) -> None:
    assert "locked" in (obey(phone, "lock") or "")
    assert "screen on" in (obey(phone, "unlock") or "")


def test_the_app_is_shown_and_killed(phone: VirtualAndroid) -> None:
    pid = phone.apps.start("org.ondeviceprofiler.runner/.RunnerActivity", {})
    assert f"runner {pid}" in state_of(phone)
    for word in ("freeze", "thaw", "kill"):
        assert f"runner {pid}" in (obey(phone, word) or "") or word == "kill"
    assert phone.apps.running() == {}


@pytest.mark.parametrize("line", ["heat", "heat hot", "heat 900", "heat nan", "throttle 0"])
def test_a_wrong_number_says_what_is_needed(phone: VirtualAndroid, line: str) -> None:
    said = obey(phone, line) or ""
    assert said.startswith(f"{line.split()[0]} ")
    assert "is no number" in said or "is not between" in said


def test_other_words_change_nothing(phone: VirtualAndroid) -> None:
    assert "type help" in (obey(phone, "explode") or "")
    assert obey(phone, "unplug now") == "unplug stands alone"
    assert phone.adbd.listening
    assert obey(phone, "quit") is None


def test_the_program_says_how_to_connect_and_ends_when_asked() -> None:
    done = run("--persona", "old-api29", typed="state\nhelp\nquit\n")
    address = next(word for word in done.stdout.split() if word.startswith("127.0.0.1:")).rstrip(";")
    assert f"connect {address}" in done.stdout
    assert "profile --device android" in done.stdout
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_port_that_is_taken_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("--port", port)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


def test_a_phone_that_really_computes_does_not_outrun_this_machines_clock() -> None:
    with pytest.raises(ValueError, match="speed 1 only"):
        VirtualAndroid(runner="python", speed=10.0)
    done = run("--runner", "python", "--speed", "10")
    assert done.returncode == 2
    assert "--speed needs --runner kotlin" in done.stderr
