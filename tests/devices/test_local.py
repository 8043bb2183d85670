from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from profiler.catalog import device_profile
from profiler.clock import RealClock
from profiler.devices.device import Place
from profiler.devices.link import Link
from profiler.devices.local import LOG_FILE, LocalDevice, LocalRunner, log_tail
from profiler.errors import RunnerLost
from profiler.records.message import ADDRESS_FILE, TOKEN_FILE, RunnerHello
from tests.messages_for_tests import make_replies

Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def device() -> LocalDevice:
    return LocalDevice(device_profile("local"), RealClock())


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start processes that wait for ever, each with words on its command line; end them afterwards."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        wait = "import sys; print('ready', flush=True); sys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", wait, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def any_page_in_memory(path: Path) -> bool:
    """Ask the kernel for each page without letting it go to the disk."""
    with path.open("rb") as stream:
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for offset in range(0, path.stat().st_size, 4096):
            try:
                if os.preadv(stream.fileno(), [bytearray(1)], offset, os.RWF_NOWAIT):
                    return True
            except BlockingIOError:
                continue
    return False


def test_this_machine_describes_itself(device: LocalDevice) -> None:
    unit = device.unit()
    assert (unit.profile, unit.platform, unit.is_phone, unit.virtual) == ("local", "host", False, False)
    assert unit.memory_bytes == psutil.virtual_memory().total
    assert unit.operating_system
    assert unit.os_build


def test_conditions_that_cannot_be_read_have_a_reason(device: LocalDevice, tmp_path: Path) -> None:
    conditions = device.conditions(tmp_path)
    assert conditions.free_storage_bytes
    assert conditions.available_memory_bytes
    assert (conditions.power.battery_percent is None) == (conditions.power.reason is not None)
    assert (conditions.temperature_millicelsius is None) == (conditions.temperature_reason is not None)


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="needs Linux's RWF_NOWAIT")
def test_files_said_to_be_dropped_from_the_page_cache_really_are(device: LocalDevice, tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(os.urandom(1 << 20))
    said = device.forget_files([path])
    assert said in ("dropped", "unknown")
    if said == "dropped":
        assert not any_page_in_memory(path)


def test_a_file_that_stays_in_memory_makes_the_answer_unknown(device: LocalDevice, tmp_path: Path) -> None:
    dropped = tmp_path / "weights"
    dropped.write_bytes(b"x" * 8192)
    kept = Path("/dev/shm")
    if not kept.is_dir():
        pytest.skip("needs a file system that lives in memory")
    in_memory = kept / f"profiler-test-{os.getpid()}"
    in_memory.write_bytes(b"x" * 8192)
    try:
        assert device.forget_files([dropped, in_memory]) == "unknown"
    finally:
        in_memory.unlink()


def test_no_files_at_all_are_not_called_dropped(device: LocalDevice) -> None:
    assert device.forget_files([]) == "unknown"


def test_a_runner_starts_shakes_hands_and_leaves_when_it_is_hung_up_on(device: LocalDevice, tmp_path: Path) -> None:
    runner = device.launch(Place(tmp_path, "run/0"), "secret")
    assert (tmp_path / TOKEN_FILE).read_text() == "secret"
    assert (tmp_path / ADDRESS_FILE).is_file()
    assert runner.hello.platform == "python"
    assert runner.launch_ns > 0
    assert psutil.pid_exists(runner.hello.pid)
    assert runner.end().code == 0
    assert not psutil.pid_exists(runner.hello.pid)


def test_a_runner_that_ends_at_once_is_told_of_with_the_last_line_of_its_log(
    device: LocalDevice, tmp_path: Path
) -> None:
    (tmp_path / f".{ADDRESS_FILE}").mkdir()  # it cannot write there where it listens
    with pytest.raises(RunnerLost, match=r"ended at once \(exit 1\): IsADirectoryError"):
        device.launch(Place(tmp_path, "run/0"), "secret")


def test_a_log_that_says_nothing_is_said_to_say_nothing(tmp_path: Path) -> None:
    assert log_tail(tmp_path) == "it printed nothing"
    (tmp_path / LOG_FILE).write_bytes(b"\n\n")
    assert log_tail(tmp_path) == "it printed nothing"
    (tmp_path / LOG_FILE).write_bytes(b"first\nlast \xff\n\n")
    assert log_tail(tmp_path) == "last �"


def test_a_leftover_runner_is_ended_and_nobody_elses(device: LocalDevice, tmp_path: Path, spawn: Spawn) -> None:
    mine = spawn("profiler.runner", str(tmp_path / "0"))
    anothers = spawn("profiler.runner", str(tmp_path / "1"))
    no_runner = spawn("an editor", str(tmp_path / "0"))
    device.recover(Place(tmp_path / "0", "run/0"))
    assert mine.wait(20) == -9
    assert anothers.poll() is None
    assert no_runner.poll() is None


def test_a_leftover_is_found_whatever_link_to_the_store_it_was_started_over(
    device: LocalDevice, tmp_path: Path, spawn: Spawn
) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "store")
    mine = spawn("profiler.runner", str(tmp_path / "link" / "0"))
    device.recover(Place(tmp_path / "store" / "0", "run/0"))
    assert mine.wait(20) == -9


def test_ending_a_leftover_does_not_wait_for_one_that_nobody_reaps(
    device: LocalDevice, tmp_path: Path, spawn: Spawn
) -> None:
    zombie = spawn("profiler.runner", str(tmp_path))
    zombie.kill()  # and it is not waited for
    device.recover(Place(tmp_path, "run/0"))
    assert zombie.wait(20) == -9


def linked_runner(process: subprocess.Popen[bytes], end_s: float = 10.0) -> LocalRunner:
    ours, theirs = socket.socketpair()
    theirs.close()
    hello = make_replies()[0]
    assert isinstance(hello, RunnerHello)
    return LocalRunner(process, Link(lambda: ours, lambda: True), hello, 0, end_s)


def test_a_runner_killed_by_the_system_gives_the_signal(spawn: Spawn) -> None:
    process = spawn()
    process.kill()
    assert linked_runner(process).end().code == -9


def test_a_runner_that_had_to_be_killed_from_here_gives_no_exit_code(spawn: Spawn) -> None:
    process = spawn()
    assert linked_runner(process, end_s=0.0).end().code is None
    assert process.poll() == -9
