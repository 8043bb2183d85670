"""The runner dies, hangs, is slow, runs out of memory or answers nonsense: each is a run that says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from profiler.devices.local import Patience
from profiler.quantities import MIB
from tests.faults.faulty_runner import Fault
from tests.faults.hosts import Desk
from tests.small_bundle import build_small_bundle


class Case(NamedTuple):
    """A fault, and the run it must become."""

    fault: Fault
    outcome: str
    stage: str | None
    component: str | None
    reason: str
    code: int
    images: int = 0


KILLED, CRASHED, ABORTED = (
    "runner_died: killed by signal 9",
    r"runner_died: crashed \(SIGSEGV\)",
    "runner_died: aborted",
)
TIMED_OUT = "timed_out: no progress for 1 s, the limit that --timeout sets"
# The small plan calls: text_encoder once an image, guide_step five times, denoiser four times, decoder once.
CASES = {
    "killed while it loads the first component": Case(
        Fault("kill", "text_encoder"), "failed", "load", "text_encoder", KILLED, 1
    ),
    "killed while it loads the last component": Case(Fault("kill", "decoder"), "failed", "load", "decoder", KILLED, 1),
    "killed in the text encoder": Case(
        Fault("kill", "text_encoder", 0), "failed", "text_encoder", "text_encoder", KILLED, 1
    ),
    "killed in the denoiser's second step": Case(
        Fault("kill", "denoiser", 1), "failed", "denoiser", "denoiser", KILLED, 1
    ),
    "killed in the decoder of a timed image": Case(
        Fault("kill", "decoder", 2), "failed", "decoder", "decoder", KILLED, 1, images=2
    ),
    "killed with a line of its journal half written": Case(
        Fault("tear", "decoder", 1), "failed", "decoder", "decoder", KILLED, 1, images=1
    ),
    "sent away by somebody": Case(
        Fault("terminate", "denoiser", 0), "aborted", "denoiser", "denoiser", "runner_stopped: .*signal 15", 3
    ),
    "a crash in the engine": Case(Fault("crash", "denoiser", 0), "failed", "denoiser", "denoiser", CRASHED, 1),
    "a crash while loading": Case(Fault("crash", "denoiser"), "failed", "load", "denoiser", CRASHED, 1),
    "an assertion in the engine": Case(Fault("abort", "decoder", 0), "failed", "decoder", "decoder", ABORTED, 1),
    "an engine that ends the process": Case(
        Fault("exit", "decoder", 0), "aborted", "decoder", "decoder", "runner_ended: exit code 7, see its log", 3
    ),
    "an error that no engine may raise": Case(
        Fault("raise", "decoder", 1), "failed", "decoder", "decoder", "runner_error: ZeroDivisionError", 4, images=1
    ),
    "a load that never ends": Case(Fault("sleep", "denoiser"), "failed", "load", "denoiser", TIMED_OUT, 1),
    "a call that never ends": Case(
        Fault("sleep", "decoder", 1), "failed", "decoder", "decoder", TIMED_OUT, 1, images=1
    ),
    "a call that never ends nor lets go of the interpreter": Case(
        Fault("hold", "denoiser", 4), "failed", "denoiser", "denoiser", TIMED_OUT, 1, images=1
    ),
    "an image that is not a number": Case(
        Fault("nan", "decoder", 1), "failed", "decoder", "decoder", "broken_image: .*not finite", 1, images=2
    ),
    "an image without end": Case(
        Fault("infinity", "decoder", 0), "failed", "decoder", "decoder", "broken_image: .*not finite", 1, images=1
    ),
    "latents of a wrong shape": Case(
        Fault("cropped", "denoiser", 0), "failed", "denoiser", "guide_step", "inference_failed: guide_step", 1
    ),
    "latents of a wrong type": Case(
        Fault("integers", "denoiser", 0), "failed", "denoiser", "guide_step", "inference_failed: guide_step", 1
    ),
    "an image of another size than its bundle says": Case(
        Fault("cropped", "decoder", 0), "failed", "decoder", "decoder", "broken_image: .*shape", 1, images=1
    ),
    "an image without height and width": Case(
        Fault("one dimension", "decoder", 0), "failed", "decoder", "decoder", "broken_image: .*shape", 1
    ),
}


def check(desk: Desk, case: Case, *options: str, patience: Patience | None = None) -> None:
    told = desk.measure(case.fault, "--timeout", "1", *options, **({"patience": patience} if patience else {}))
    run = desk.only_run()
    assert (run.outcome, run.stage, run.component) == (case.outcome, case.stage, case.component), run.reason
    assert re.match(case.reason, run.reason or ""), run.reason
    assert told.code == case.code
    assert len(run.iterations) == case.images
    desk.check_shown(run)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_runner_that_fails_in_its_job(desk: Desk, case: Case) -> None:
    check(desk, case)


def test_a_runner_that_fails_in_a_later_process_keeps_what_the_first_made(desk: Desk) -> None:
    case = Case(Fault("kill", "decoder", 0, process=1), "failed", "decoder", "decoder", KILLED, 1, images=1)
    check(desk, case, "--cold-starts", "3")
    assert [process.outcome for process in desk.only_run().processes] == ["completed", "failed"]


def test_a_runner_that_runs_out_of_memory_while_it_loads(
    slow_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = Desk(slow_bundle, tmp_path / "store", capsys)
    check(desk, Case(Fault("limit", "denoiser"), "failed", "load", "denoiser", "out_of_memory: ", 1))


def test_a_runner_that_runs_out_of_memory_while_it_denoises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    desk = Desk(build_small_bundle(tmp_path / "bundle", hungry=64), tmp_path / "store", capsys)
    fault = Fault("limit", "denoiser", 0, amount=16 * MIB)
    check(desk, Case(fault, "failed", "denoiser", "denoiser", "out_of_memory: ", 1))


LAUNCHES = {
    "says nothing of where it listens": Case(Fault("mute"), "aborted", "launch", None, ".*did not come up in 1 s", 3),
    "finds its port taken": Case(
        Fault("port taken"), "aborted", "launch", None, r".*ended at once \(exit 1\): cannot listen on .*in use", 3
    ),
    "has another token": Case(Fault("wrong token"), "aborted", "launch", None, r".*refused \(token\)", 3),
    "speaks an older version": Case(Fault("old version"), "aborted", "launch", None, ".*update the older", 3),
    "speaks a newer version": Case(Fault("new version"), "aborted", "launch", None, ".*speaks 99, the host 1", 3),
    "is no runner": Case(Fault("garbage"), "aborted", "launch", None, "the runner: not a valid", 3),
    "answers bytes": Case(Fault("binary"), "aborted", "launch", None, "the runner: not a valid", 3),
    "hangs up at once": Case(Fault("silent"), "aborted", "launch", None, ".*(closed the connection|broke)", 3),
    "gives no address": Case(Fault("no address"), "aborted", "launch", None, ".*does not say where it listens", 3),
    "gives no port": Case(Fault("no port"), "aborted", "launch", None, ".*no runner answers on 127.0.0.1:70000", 3),
}


@pytest.mark.parametrize("case", LAUNCHES.values(), ids=LAUNCHES)
def test_a_runner_that_cannot_be_launched_is_a_run_too(desk: Desk, case: Case) -> None:
    slow = case.fault.what != "mute"
    check(desk, case, patience=Patience(start_s=20.0 if slow else 1.0, end_s=1.0))


def test_a_runner_that_comes_up_late_is_waited_for(desk: Desk) -> None:
    assert desk.measure(Fault("late", amount=1.5)).code == 0
    run = desk.only_run()
    assert run.outcome == "completed"
    assert run.processes[0].launch_ns is not None
    assert run.processes[0].launch_ns > 1_500_000_000


def test_a_model_that_is_slow_but_gets_on_is_waited_for(desk: Desk) -> None:
    assert desk.measure(Fault("note", "decoder", 1, amount=1.2), "--timeout", "3").code == 0
    assert desk.only_run().outcome == "completed"
