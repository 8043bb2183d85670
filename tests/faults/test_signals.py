"""Ctrl-C, SIGTERM and SIGHUP in every phase: the exit code says so, and what was measured is kept."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from profiler.cli import main
from profiler.clock import Deadline, RealClock
from profiler.store import Store
from tests.cli.conftest import LEAST
from tests.faults.faulty_runner import Fault
from tests.faults.hosts import check_nothing_left, start_profile
from tests.victims import runners_over

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(small_bundle: Path, store: Store) -> Iterator[Start]:
    """Start `profile` as a process; one that a failed test left is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def start_one(fault: Fault, *options: str, **settings: Any) -> subprocess.Popen[bytes]:
        arguments = ["--model", str(small_bundle), "--store", str(store.root), *LEAST, *options]
        started.append(start_profile(arguments, fault, **settings))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.communicate()
    for runner in runners_over(store.root):
        runner.kill()


def wait_for(reached: Callable[[], bool], what: str) -> None:
    limit = Deadline(30, RealClock())
    while not reached():
        assert not limit.passed(), f"it never came to {what}"
        RealClock().sleep(0.005)


def listens(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether a process has taken SIGTERM into its own hands."""
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (caught,) = [int(line.split()[1], 16) for line in status if line.startswith("SigCgt:")]
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def reached(store: Store, name: str) -> Callable[[], bool]:
    return lambda: any(store.root.glob(f"sessions/*/{name}"))


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, said = process.communicate(timeout=30)
    assert b"Traceback" not in said, said.decode()
    return process.returncode, out.decode(), said.decode()


# phase → a fault that makes it last, what shows that it has begun, options, stage, images
PHASES: dict[str, tuple[Fault, str, tuple[str, ...], str, int]] = {
    "launch": (Fault("late", amount=60), "launch-0.json", (), "launch", 0),
    "load": (Fault("sleep", "decoder"), "device/0/reached", (), "load", 0),
    "cold": (Fault("sleep", "decoder", 0), "device/0/reached", (), "decoder", 0),
    "warm-up": (Fault("sleep", "decoder", 1), "device/0/reached", ("--warmups", "2"), "decoder", 1),
    "timed": (Fault("sleep", "decoder", 2), "device/0/reached", (), "decoder", 2),
    "a second launch": (Fault("late", process=1, amount=60), "launch-1.json", ("--cold-starts", "2"), "launch", 1),
}


@pytest.mark.parametrize(("fault", "mark", "options", "stage", "images"), PHASES.values(), ids=PHASES)
def test_ctrl_c_keeps_what_was_measured(
    start: Start, store: Store, fault: Fault, mark: str, options: tuple[str, ...], stage: str, images: int
) -> None:
    process = start(fault, "--json", *options)
    wait_for(reached(store, mark), mark)
    process.send_signal(signal.SIGINT)
    code, out, said = ended(process)
    assert code == 130
    assert "stopped; what was measured is kept" in said
    assert json.loads(out)["error"]["exit_code"] == 130
    check_nothing_left(store.root)
    (run_id,) = store.run_ids()
    run = store.load(run_id)
    assert (run.outcome, run.reason) == ("interrupted", "stopped by the user")
    assert (run.stage, len(run.iterations)) == (stage, images)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda value: str(value),
)
def test_a_signal_before_a_session_leaves_nothing(start: Start, store: Store, number: int, code: int) -> None:
    # While modules are imported Python swallows what a handler raises in one of its own callbacks, about once in
    # twenty times: such a signal is lost, and a user sends another.
    for _ in range(4):
        process = start(Fault("none"))
        wait_for(lambda process=process: listens(process), "listen")  # type: ignore[misc]
        process.send_signal(number)
        out, said = process.communicate(timeout=30)
        if (process.returncode, out, b"Traceback" in said) == (code, b"", False):
            break
    else:
        pytest.fail(f"exit {process.returncode}: {said.decode()}")
    ids = store.run_ids()
    assert not store.root.exists() or not any((store.root / "sessions").iterdir())
    assert all(store.load(run_id).outcome == "completed" for run_id in ids)  # of those whose signal was lost


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_who_ends_the_host_politely_gets_a_run(start: Start, store: Store, number: int, code: int) -> None:
    process = start(Fault("note", "decoder", 1, amount=1.0))
    wait_for(reached(store, "device/0/reached"), "the second image")
    process.send_signal(number)
    assert ended(process)[0] == code
    check_nothing_left(store.root)
    (run_id,) = store.run_ids()
    assert store.load(run_id).outcome == "interrupted"


def test_a_second_ctrl_c_quits_at_once_and_the_next_command_collects(
    start: Start, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    # A runner that holds its interpreter cannot say goodbye: the host waits for it, and is told not to.
    process = start(Fault("hold", "decoder", 1), environment={"TEST_END_S": "25"})
    wait_for(reached(store, "device/0/reached"), "the hold")
    process.send_signal(signal.SIGINT)
    RealClock().sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, _, said = ended(process)
    assert code == 130
    assert "stopped at once; the next profile command collects what was measured" in said
    assert store.run_ids() == []
    assert main(["runs", "--store", str(store.root)]) == 0
    assert "whose host went away (1 images kept)" in " ".join(capsys.readouterr().err.split())
    check_nothing_left(store.root)
    (run_id,) = store.run_ids()
    assert store.load(run_id).outcome == "interrupted"


@pytest.mark.parametrize("command", ["runs", "show", "doctor", "models"])
def test_ctrl_c_in_another_command_is_no_bug(store: Store, command: str) -> None:
    where = [] if command == "models" else ["--store", str(store.root)]
    process = start_profile([command, *(["last"] if command == "show" else []), *where])
    wait_for(lambda: listens(process), "listen")
    process.send_signal(signal.SIGINT)
    code, out, said = ended(process)
    assert (code, out) == (130, "")
    assert said == "profile: stopped\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_the_parent_ignores_is_ignored(start: Start, store: Store, number: signal.Signals) -> None:
    ignore = lambda: signal.signal(number, signal.SIG_IGN)  # noqa: E731 - as nohup does
    process = start(Fault("note", "decoder", 0, amount=0.5), preexec_fn=ignore)
    wait_for(reached(store, "device/0/reached"), "the first image")
    process.send_signal(number)
    assert ended(process)[0] == 0
    (run_id,) = store.run_ids()
    assert store.load(run_id).outcome == "completed"


def test_a_terminal_that_is_closed_ends_the_session_in_good_order(start: Start, store: Store) -> None:
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = start(
        Fault("note", "decoder", 1, amount=1.0),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    wait_for(reached(store, "device/0/reached"), "the second image")
    os.close(ours)
    assert process.wait(30) == 129
    check_nothing_left(store.root)
    (run_id,) = store.run_ids()
    assert store.load(run_id).outcome == "interrupted"


def test_progress_that_nobody_reads_does_not_end_the_session(start: Start, store: Store) -> None:
    process = start(Fault("note", "decoder", 0, amount=0.3))
    assert process.stderr is not None
    process.stderr.close()
    process.stderr = None
    assert process.wait(30) == 0
    (run_id,) = store.run_ids()
    assert store.load(run_id).outcome == "completed"
