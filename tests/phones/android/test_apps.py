"""App processes of the phone are real ones, and the model hears how each of them ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.phones.android.apps import Apps, Launching, NoActivityError, kotlin_runner, python_runner
from tests.phones.android.apps_contract import InstallRefusedError
from tests.phones.android.installed import Installed
from tests.phones.android.packages import MANIFEST, Apk, read_apk, write_apk
from tests.phones.android.rootfs import Rootfs

NAME = "org.example.app"
APK = Apk(NAME, 3, "3", (".Main",))
DEADLINE_S = 20


class Heard:
    """What the model is told."""

    def __init__(self) -> None:
        self.started: list[int] = []
        self.ended: list[tuple[int, str, int]] = []
        self.told = threading.Event()

    def start_process(self, pid: int, package: str, uid: int) -> None:
        self.started.append(pid)

    def end_process(self, pid: int, why: str = "exit", *, status: int = 0) -> None:
        self.ended.append((pid, why, status))
        self.told.set()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Rootfs]:
    root = tmp_path / "phone"
    (root / "data/app").mkdir(parents=True)
    files = Rootfs(root)
    yield files
    files.close()


@pytest.fixture
def apps(files: Rootfs, heard: Heard) -> Iterator[Apps]:
    """A phone with one app whose process runs the Python program in its storage folder."""

    def program(launching: Launching) -> Sequence[str]:
        return [sys.executable, "-S", "-c", (launching.storage / "program").read_text()]

    apps = Apps(files, Installed(files, lambda: 1 << 30), heard, program, "")
    apps.packages.add(APK)
    yield apps
    apps.close()


def start(apps: Apps, files: Rootfs, program: str) -> int:
    """Start the app with a program."""
    folder = files.root / "data/job"
    folder.mkdir(exist_ok=True)
    (folder / "program").write_text(program)
    return apps.start(f"{NAME}/.Main", {"storage": "/data/job"})


SLEEPS = "import time; time.sleep(600)"


def test_an_app_that_ends_by_itself_is_told_with_its_code(apps: Apps, files: Rootfs, heard: Heard) -> None:
    pid = start(apps, files, "print('hello', flush=True); raise SystemExit(7)")
    assert heard.told.wait(DEADLINE_S)
    assert heard.ended == [(pid, "exit", 7)]
    assert apps.running() == {}
    assert (files.root / "data/job/runner.log").read_text() == "hello\n"


@pytest.mark.parametrize(("number", "why"), [(signal.SIGKILL, "kill"), (signal.SIGABRT, "crash")])
def test_an_app_that_dies_of_a_signal_is_told(
    apps: Apps, files: Rootfs, heard: Heard, number: signal.Signals, why: str
) -> None:
    pid = start(apps, files, f"import os; os.kill(os.getpid(), {int(number)})")
    assert heard.told.wait(DEADLINE_S)
    assert heard.ended == [(pid, why, 0)]


@pytest.mark.parametrize("why", ["kill", "crash", "anr", "force-stop"])
def test_an_app_that_is_ended_is_gone_for_good(apps: Apps, files: Rootfs, heard: Heard, why: str) -> None:
    pid = start(apps, files, SLEEPS)
    assert apps.running() == {pid: NAME}
    apps.freeze(NAME)
    apps.kill(pid, why)
    assert heard.ended == [(pid, why, 0)]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_the_model_has_ended_it_is_not_told_of(apps: Apps, files: Rootfs, heard: Heard) -> None:
    pid = start(apps, files, SLEEPS)
    assert apps.end_real(pid)
    assert not apps.end_real(pid)
    assert heard.ended == []


def test_starting_what_runs_gives_the_same_process(apps: Apps, files: Rootfs, heard: Heard) -> None:
    assert start(apps, files, SLEEPS) == start(apps, files, SLEEPS)
    assert len(heard.started) == 1


def test_files_of_an_app_may_be_changed_by_the_shell(apps: Apps, files: Rootfs, heard: Heard) -> None:
    start(apps, files, f"open({str(files.root / 'data/job/out')!r}, 'w')")
    assert heard.told.wait(DEADLINE_S)
    assert (files.root / "data/job/out").stat().st_mode & 0o777 == 0o666


@pytest.mark.parametrize("component", ["org.absent/.Main", f"{NAME}/.Absent", NAME, ""])
def test_an_activity_that_is_not_there_cannot_be_started(apps: Apps, component: str) -> None:
    with pytest.raises(NoActivityError):
        apps.start(component, {})


def test_a_newer_package_stops_the_older_ones_process(apps: Apps, files: Rootfs, heard: Heard, tmp_path: Path) -> None:
    pid = start(apps, files, SLEEPS)
    apps.install(write_apk(tmp_path / "new.apk", NAME, 4).read_bytes())
    assert heard.ended == [(pid, "force-stop", 0)]
    assert (files.root / apps.installed()[NAME].lstrip("/")).is_file()


def test_an_older_package_is_refused_unless_it_is_allowed(apps: Apps, tmp_path: Path) -> None:
    older = write_apk(tmp_path / "old.apk", NAME, 2).read_bytes()
    with pytest.raises(InstallRefusedError, match=r"VERSION_DOWNGRADE.* code 2 is older than current 3"):
        apps.install(older)
    assert apps.install(older, downgrade=True) == NAME
    assert list((apps.packages._files.root / "data/app").glob("*.tmp")) == []


def test_a_package_larger_than_the_storage_is_refused(files: Rootfs, tmp_path: Path) -> None:
    packages = Installed(files, lambda: 10)
    with pytest.raises(InstallRefusedError, match="INSUFFICIENT_STORAGE"):
        packages.install(write_apk(tmp_path / "a.apk", NAME, 1).read_bytes())


def test_what_is_ordered_fails_once(apps: Apps, tmp_path: Path) -> None:
    apk = write_apk(tmp_path / "a.apk", NAME, 9).read_bytes()
    apps.packages.next_failure = "INSTALL_FAILED_VERIFICATION_FAILURE: no"
    with pytest.raises(InstallRefusedError, match="VERIFICATION"):
        apps.install(apk)
    assert apps.install(apk) == NAME


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"no zip at all", "NOT_APK"), (b"", "NOT_APK"), (None, "UNEXPECTED_EXCEPTION"), ("package=x\n", "MANIFEST")],
)
def test_what_is_no_package_is_refused(tmp_path: Path, content: bytes | str | None, reason: str) -> None:
    path = tmp_path / "file"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(MANIFEST if content else "classes.dex", content or "")
    with pytest.raises(InstallRefusedError, match=reason):
        read_apk(path)


def test_a_zip_whose_name_says_what_it_is_needs_no_manifest(tmp_path: Path) -> None:
    path = tmp_path / "org.example.app-12.apk"
    zipfile.ZipFile(path, "w").close()
    assert read_apk(path)[:2] == ("org.example.app", 12)


def test_runners_are_told_their_folders_and_the_model(tmp_path: Path) -> None:
    launching = Launching(tmp_path / "storage", tmp_path, "127.0.0.1:9")
    folders = ["--storage", str(tmp_path / "storage"), "--root", str(tmp_path)]
    assert list(python_runner(launching)[-4:]) == folders
    jar = tmp_path / "virtual.jar"
    assert kotlin_runner(jar)(launching)[0] == "sh"  # says in the log that it is not built
    jar.touch()
    assert list(kotlin_runner(jar)(launching)[-6:]) == [*folders, "--model", "127.0.0.1:9"]
