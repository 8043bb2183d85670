"""What can be wrong with a phone, as real adb sees it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.phones.adb_server import Adb
from tests.phones.android.adbd import Trust
from tests.phones.android.packages import write_apk
from tests.phones.android.phone import VirtualAndroid
from tests.phones.android.phones_for_tests import Seen, connected

TMP = "/data/local/tmp"
# Long enough for what answers at all; a test that waits for it has gone wrong, or expects just that there is no answer.
NO_ANSWER_S = 0.5


@pytest.fixture
def seen(adb36: Adb) -> Iterator[Seen]:
    """A phone of the test's own, to be broken."""
    with connected(adb36) as seen:
        yield seen


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file whose push takes long enough to be interrupted."""
    path = tmp_path / "large"
    path.write_bytes(os.urandom(1 << 20) * 16)
    return path


def answers(seen: Seen) -> bool:
    """Tell whether a shell command ends in good time."""
    process = seen.adb.start("shell", "true", serial=seen.phone.address)
    try:
        return process.wait(NO_ANSWER_S) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        process.kill()
        process.communicate()


# -- trust


def test_a_phone_that_asks_is_unauthorized_until_its_user_agrees_and_for_good_after(adb: Adb) -> None:
    with connected(adb, trust=Trust.ASKS) as seen:
        assert seen.state() == "unauthorized"
        assert "unauthorized" in seen.shell("true").text
        seen.phone.authorize()
        assert seen.run("wait-for-device").code == 0
        assert seen.shell("echo in").stdout == "in\n"
        seen.phone.unplug()
        seen.phone.plug()
        assert "connected to" in seen.connect()  # by the signature of the key that it knows now
        assert seen.state() == "device"


def test_a_phone_that_denies_stays_unauthorized(adb36: Adb) -> None:
    with connected(adb36, trust=Trust.DENIES) as seen:
        assert "failed to authenticate" in seen.connect()
        assert seen.state() == "unauthorized"


# -- there, but not of use


def test_an_offline_phone_is_listed_so_until_it_is_plugged_in_anew(seen: Seen) -> None:
    seen.phone.go_offline()
    while seen.state() == "device":
        pass  # the server takes the news in its own time
    assert seen.state() == "offline"
    assert "device offline" in seen.shell("true").text
    seen.phone.plug()
    seen.connect()
    assert seen.shell("echo back").stdout == "back\n"


def test_a_zombie_is_listed_as_a_device_and_answers_nothing(seen: Seen) -> None:
    seen.phone.become_zombie()
    assert seen.state() == "device"
    assert not answers(seen)
    seen.phone.plug()
    seen.connect()
    assert seen.shell("echo back").stdout == "back\n"


def test_a_hung_shell_leaves_files_and_sockets_alone(seen: Seen, tmp_path: Path) -> None:
    seen.phone.hang_shell()
    assert not answers(seen)
    (tmp_path / "file").write_text("x")
    assert seen.run("push", str(tmp_path / "file"), f"{TMP}/file").code == 0
    seen.phone.unhang_shell()
    assert seen.shell(f"cat {TMP}/file").stdout == "x"


def test_debugging_switched_off_refuses_connections_and_leaves_the_cable_in(seen: Seen) -> None:
    seen.phone.close_port()
    assert "failed to connect" in seen.connect() or "cannot connect" in seen.connect()
    assert seen.phone.model.physics.plug == "usb"


# -- gone


def test_a_pulled_cable_ends_a_push_and_the_phone_comes_back_on_the_same_port(adb: Adb, large: Path) -> None:
    with connected(adb) as seen:
        address = seen.phone.address
        seen.phone.unplug_during_push(after_bytes=2 << 20)
        done = seen.run("push", str(large), f"{TMP}/large")
        assert done.code == 1
        assert seen.phone.model.physics.plug == "none"
        arrived = (seen.phone.root / "data/local/tmp/large").stat().st_size
        assert 2 << 20 <= arrived < large.stat().st_size
        seen.phone.plug()
        seen.connect()
        assert seen.phone.address == address
        assert seen.run("push", str(large), f"{TMP}/large").code == 0
        assert (seen.phone.root / "data/local/tmp/large").read_bytes() == large.read_bytes()


def test_a_pulled_cable_ends_forwarded_connections(seen: Seen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(seen.run("forward", "tcp:0", f"tcp:{listener.getsockname()[1]}").stdout)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as ours:
            theirs, _ = listener.accept()
            with theirs:
                theirs.settimeout(20)
                seen.phone.unplug()
                assert ours.recv(1) == b""
                assert theirs.recv(1) == b""


def test_a_command_that_is_hung_up_on_dies_with_its_children(seen: Seen) -> None:
    process = seen.adb.start("shell", "echo $$; sleep 600 & wait", serial=seen.phone.address)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate()
    while lives(pid):
        pass  # it dies once the hang-up has reached the phone


def test_a_phone_that_restarts_keeps_its_files_and_comes_back(seen: Seen) -> None:
    seen.shell(f"echo kept > {TMP}/file")
    boots = seen.phone.model.boots
    assert seen.run("reboot").code == 0
    while seen.phone.model.boots == boots:
        pass  # adb does not wait for it
    seen.connect()
    assert seen.run("wait-for-device", "shell", f"cat {TMP}/file").stdout == "kept\n"


def test_a_loose_contact_is_got_over_by_the_server_itself(seen: Seen) -> None:
    seen.phone.drop_connections()
    assert seen.run("wait-for-device", "shell", "echo back").stdout == "back\n"


# -- full


def test_a_full_phone_refuses_a_file_with_the_reason_and_keeps_nothing_of_it(seen: Seen, large: Path) -> None:
    seen.phone.fill_storage(leaving_bytes=3 << 20)
    done = seen.run("push", str(large), f"{TMP}/large")
    assert "write failed: No space left on device" in done.text
    assert not (seen.phone.root / "data/local/tmp/large").exists()
    assert seen.shell("df -k /data").stdout.split()[-3] == str((3 << 20) // 1024)


def test_a_full_phone_refuses_a_package(seen: Seen, tmp_path: Path) -> None:
    seen.phone.fill_storage()
    apk = write_apk(tmp_path / "a.apk", "org.example.app", 1)
    assert "INSTALL_FAILED_INSUFFICIENT_STORAGE" in seen.run("install", str(apk)).text


# -- apps that end


START = "am start -W -S -n org.ondeviceprofiler.runner/.RunnerActivity --es storage /sdcard/Download/job"


@pytest.fixture
def running(adb36: Adb) -> Iterator[Seen]:
    """A phone whose runner app is a process that does nothing."""
    with connected(adb36, runner=lambda launching: ("sleep", "600")) as seen:
        assert "Status: ok" in seen.shell(START).stdout
        yield seen


def test_an_apps_process_is_the_same_on_the_phone_and_here(running: Seen) -> None:
    (pid,) = running.phone.apps.running()
    assert lives(pid)
    assert running.shell("pidof org.ondeviceprofiler.runner").stdout == f"{pid}\n"
    assert f"Pid:\t{pid}\n" in running.shell(f"cat /proc/{pid}/status").stdout
    assert running.shell(f"kill -9 {pid}").code == 1  # it belongs to another user
    running.shell(START)
    (other,) = running.phone.apps.running()
    assert other != pid
    assert not lives(pid)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (lambda phone: phone.kill_app(), "SIGNALED"),
        (lambda phone: phone.kill_app("crash"), "CRASH"),
        (lambda phone: phone.kill_app("anr"), "ANR"),
        (lambda phone: phone.kill_app("force-stop"), "USER REQUESTED"),
        (lambda phone: use_all_memory(phone), "LOW_MEMORY|LOW MEMORY"),
    ],
    ids=["kill", "crash", "anr", "force-stop", "memory"],
)
def test_an_app_that_ends_leaves_a_reason_and_nothing_else(
    running: Seen, end: Callable[[VirtualAndroid], None], told: str
) -> None:
    (pid,) = running.phone.apps.running()
    end(running.phone)
    assert not lives(pid)
    assert running.shell("pidof org.ondeviceprofiler.runner").code == 1
    assert running.shell(f"test -e /proc/{pid}").code == 1
    exits = running.shell("dumpsys activity exit-info org.ondeviceprofiler.runner").stdout
    assert re.search(rf"pid={pid} .*reason=\d+ \(.*({told})", exits, re.DOTALL)


def use_all_memory(phone: VirtualAndroid) -> None:
    """Let the app take what the phone has not."""
    with phone.model.present():
        for process in phone.model.memory.processes.values():
            phone.model.memory.grow(process, 0, phone.model.memory.total_bytes)


def test_an_app_that_is_frozen_lives_on(running: Seen) -> None:
    (pid,) = running.phone.apps.running()
    running.phone.freeze_app()
    assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    running.phone.thaw_app()
    running.shell("am force-stop org.ondeviceprofiler.runner")
    assert not lives(pid)


# -- others


def test_two_phones_are_apart(adb36: Adb, tmp_path: Path) -> None:
    with connected(adb36) as one, connected(adb36) as other:
        assert one.phone.address != other.phone.address
        one.shell(f"echo one > {TMP}/name")
        assert other.shell(f"cat {TMP}/name").code == 1
        one.phone.unplug()
        assert other.shell("echo here").stdout == "here\n"


def test_one_phone_may_be_connected_twice(adb36: Adb) -> None:
    with connected(adb36) as seen:
        second = f"localhost:{seen.phone.adbd.port}"
        adb36.run("connect", second)
        serials = [
            adb36.run("shell", "getprop ro.serialno", serial=name).stdout for name in (seen.phone.address, second)
        ]
        assert serials == [f"{seen.phone.serial}\n".encode()] * 2
        adb36.run("disconnect", second)


def test_when_the_phone_is_gone_so_is_all_that_it_started(adb36: Adb) -> None:
    with connected(adb36) as seen:
        daemon = int(seen.shell("setsid sleep 600 >/dev/null 2>&1 & echo $!").stdout)
        seen.shell("am start -W -n org.ondeviceprofiler.runner/.RunnerActivity --es storage /sdcard/Download/job")
        (pid,) = seen.phone.apps.running()
        root = seen.phone.root
    assert not root.exists()
    assert not lives(pid)
    assert not lives(daemon)


def lives(pid: int) -> bool:
    """Tell whether a process runs; one that was killed may wait for its parent to hear of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
