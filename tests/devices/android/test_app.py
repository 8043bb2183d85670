"""The runner app: installed, started and stopped in the phone's words, and why its process ended."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.clock import FakeClock, RealClock
from profiler.devices.android.adb import Server, Transport
from profiler.devices.android.app import PACKAGE, App
from profiler.devices.android.shell import Shell
from profiler.devices.device import Ended
from profiler.errors import DeviceError, InputError, MissingSource
from tests.phones.android.packages import write_apk
from tests.phones.android.phone import VirtualAndroid
from tests.phones.model_log import LogLine

STORAGE = f"/sdcard/Android/data/{PACKAGE}/files/sessions/run/1"


@pytest.fixture
def app(shell: Shell) -> Iterator[App]:
    """Give the app, which does not run."""
    shell.check(f"mkdir -p {STORAGE}")
    found = App(shell, RealClock())
    yield found
    found.stop()


def test_an_installed_app_is_there_and_another_is_not(app: App, shell: Shell) -> None:
    assert app.require() == app.version()
    absent = App(shell, RealClock(), package="org.ondeviceprofiler.run")  # the beginning of one that is there

    assert absent.version() is None
    with pytest.raises(DeviceError, match=r"the runner app \(org\.ondeviceprofiler\.run\) is not installed"):
        absent.require()


def test_a_started_app_has_a_fresh_process_until_it_is_stopped(app: App) -> None:
    assert app.pid() is None

    app.launch(STORAGE)
    first = app.pid()
    app.launch(STORAGE)
    second = app.pid()

    assert first is not None
    assert second is not None
    assert second != first
    app.stop()
    assert app.pid() is None


def test_an_app_that_is_not_installed_does_not_start_and_says_what_to_do(shell: Shell) -> None:
    absent = App(shell, RealClock(), package="org.nowhere")

    with pytest.raises(DeviceError, match=r"org\.nowhere did not start: .*does not exist") as caught:
        absent.launch(STORAGE)

    assert "install" in (caught.value.hint or "")


def test_a_start_that_hangs_is_told_with_the_seconds(server: Server) -> None:
    with VirtualAndroid("pixel9") as phone:
        server.connect(phone.address)
        shell = Shell(Transport(server, phone.address))
        shell.run("true")
        phone.hang_shell()
        shell.close()

        with pytest.raises(DeviceError, match=r"'am start -W -S .* gave no answer in 0\.2 s"):
            App(shell, RealClock()).launch(STORAGE, deadline_s=0.2)
        shell.close()
        server.disconnect(phone.address)


def test_an_app_is_installed_over_the_one_that_is_there(app: App, tmp_path: Path, phone: VirtualAndroid) -> None:
    newer = write_apk(tmp_path / "runner.apk", PACKAGE, 7)
    with zipfile.ZipFile(newer, "a") as archive:
        archive.writestr("large", os.urandom(3_000_000))

    app.install(newer)

    assert phone.apps.installed()[PACKAGE].endswith(f"{PACKAGE}-7/base.apk")
    assert app.version() is not None


def test_an_older_app_than_the_one_on_the_phone_is_refused_with_what_to_do(app: App, tmp_path: Path) -> None:
    app.install(write_apk(tmp_path / "new.apk", PACKAGE, 70))

    with pytest.raises(DeviceError, match=r"cannot install old\.apk: INSTALL_FAILED_VERSION_DOWNGRADE") as caught:
        app.install(write_apk(tmp_path / "old.apk", PACKAGE, 3))

    assert f"adb uninstall {PACKAGE}" in (caught.value.hint or "")


def test_a_file_that_is_no_app_is_the_users_mistake_and_not_the_phones(app: App, tmp_path: Path) -> None:
    (tmp_path / "x.apk").write_bytes(b"no app")

    with pytest.raises(InputError, match=r"cannot install x\.apk: INSTALL_PARSE_FAILED_NOT_APK"):
        app.install(tmp_path / "x.apk")
    with pytest.raises(MissingSource, match=r"no app .*/y\.apk"):
        app.install(tmp_path / "y.apk")


@pytest.mark.parametrize(
    ("text", "what_to_do"),
    [
        ("INSTALL_FAILED_USER_RESTRICTED: Install canceled by user", "allow it on its screen"),
        ("INSTALL_FAILED_INSUFFICIENT_STORAGE: not enough", "storage is full"),
        ("INSTALL_FAILED_SOMETHING_NEW: who knows", "Look the code up"),
    ],
)
def test_a_phone_that_refuses_to_install_is_told_with_what_to_do(
    app: App, phone: VirtualAndroid, tmp_path: Path, text: str, what_to_do: str
) -> None:
    phone.fail_next_install(text)

    with pytest.raises(DeviceError, match=text.split(":")[0]) as caught:
        app.install(write_apk(tmp_path / "runner.apk", PACKAGE, 100))

    assert what_to_do in (caught.value.hint or "")


def started(app: App) -> int:
    """Start the app and return its process."""
    app.launch(STORAGE)
    pid = app.pid()
    assert pid is not None
    return pid


@pytest.mark.parametrize(
    ("why", "kind", "words"),
    [
        ("crash", "native_crash", "native code: signal 11 (SIGSEGV)"),
        ("anr", "not_responding", "did not respond"),
    ],
)
def test_the_system_tells_why_a_process_ended(app: App, phone: VirtualAndroid, why: str, kind: str, words: str) -> None:
    pid = started(app)
    phone.apps.kill(pid, why)

    told = app.exit_of(pid).exit

    assert told is not None
    assert told.kind == kind
    assert words in told.detail
    assert f"pid={pid}" in told.evidence
    assert app.pid() is None


def test_a_process_that_the_low_memory_killer_ended_is_told_with_its_size(app: App, phone: VirtualAndroid) -> None:
    pid = started(app)
    with phone.model.present() as now_ns:
        phone.model.memory.grow(phone.model.memory.processes[pid], 0, 40 << 30)
        phone.model.processes.kill_for_memory(now_ns, phone.model.wall_ns())
    phone.model.sync()

    told = app.exit_of(pid).exit

    assert told is not None
    assert told.kind == "low_memory"
    assert told.resident_bytes is not None
    assert told.resident_bytes > 1 << 30
    assert "lowmemorykiller" in told.evidence


def test_a_stop_on_request_is_no_crash(app: App) -> None:
    pid = started(app)
    app.stop()

    told = app.exit_of(pid).exit

    assert told is not None
    assert told.kind == "stopped"


def test_a_process_that_left_is_told_with_its_exit_code(server: Server) -> None:
    with VirtualAndroid("pixel9", runner=lambda launching: ("sh", "-c", "sleep 3; exit 5")) as phone:
        server.connect(phone.address)
        shell = Shell(Transport(server, phone.address))
        shell.check(f"mkdir -p {STORAGE}")
        app = App(shell, RealClock())
        pid = started(app)

        assert app.exit_of(pid, wait_s=20.0) == Ended(5)

        shell.close()
        server.disconnect(phone.address)


def test_of_a_process_that_never_was_nothing_is_told_after_the_wait(shell: Shell) -> None:
    clock = FakeClock()

    assert App(shell, clock).exit_of(424242, wait_s=1.0) == Ended(None)
    assert clock.boot_ns() >= 1_000_000_000


def test_a_log_line_about_another_app_with_the_same_number_is_not_ours(app: App, phone: VirtualAndroid) -> None:
    pid = started(app)
    older = f"[{pid},0,com.other.app,0,java.lang.Error,x,y,1]"
    phone.model.processes.log.write(LogLine("events", phone.model.wall_ns(), 1022, "I", "am_crash", older))
    phone.apps.kill(pid, "anr")

    told = app.exit_of(pid).exit

    assert told is not None
    assert (told.kind, "com.other.app" in told.evidence) == ("not_responding", False)
