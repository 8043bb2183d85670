"""Runner apps that are not the right one, run out of something, or whose system kills them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from profiler import codec
from profiler.cli.measuring import exit_code
from profiler.records.message import PROTOCOL_VERSION, Refused, RunnerHello
from profiler.records.record import Record
from tests.devices.android.faults_for_tests import CommandLine, sessions, until, with_parameters
from tests.devices.android.phones_for_tests import Desk
from tests.phones.android.apps import Launching, RunnerArgv, python_runner
from tests.phones.android.packages import write_apk
from tests.phones.android.phone import VirtualAndroid
from tests.small_bundle import build_small_bundle, make_order

HELLO = RunnerHello(
    protocol_version=PROTOCOL_VERSION,
    runner_version="0.9",
    platform="android",
    engines={"onnxruntime": "1.23.0"},
    virtual=True,
    pid=1,
    synthetic=True,
)
OLD = Refused(code="protocol_version", reason="the runner speaks 2, the host 1: update the older")


def other_app(*replies: Record) -> RunnerArgv:
    """Return an app that answers each line of a host with the next of these replies."""
    lines = [codec.encode(reply).decode() for reply in replies]

    def argv(launching: Launching) -> Sequence[str]:
        return [sys.executable, "-P", "-m", "tests.devices.android.other_app", str(launching.storage), *lines]

    return argv


def short_of_disk(launching: Launching) -> Sequence[str]:
    """Return the Python runner on a disk that takes no file of more than four kilobytes."""
    return ["sh", "-c", f"ulimit -f 8; exec {shlex.join(python_runner(launching))}"]


@pytest.mark.parametrize(
    ("replies", "code", "words"),
    [
        (
            (replace(HELLO, protocol_version=PROTOCOL_VERSION + 1),),
            3,
            "the runner speaks 2, the host 1: update the older",
        ),
        ((OLD,), 3, "the runner speaks 2, the host 1: update the older"),
        ((replace(HELLO, engines={}),), 2, "has no engine 'onnxruntime', which this bundle needs; it has: none"),
    ],
    ids=["speaks another protocol", "refuses ours", "has no engine"],
)
def test_another_app_than_ours_is_named_as_such(
    profile: CommandLine, desk: Desk, small_bundle: Path, replies: tuple[Record, ...], code: int, words: str
) -> None:
    with VirtualAndroid("pixel9", runner=other_app(*replies)) as phone:
        desk.server.connect(phone.address)
        said = profile.measure(phone, small_bundle)
        assert said.code == code
        assert words in said.text
        until(lambda: phone.apps.running() == {})
    assert sessions(desk.store) == []


def test_an_app_that_ends_at_once_says_what_it_said(profile: CommandLine, desk: Desk, small_bundle: Path) -> None:
    with VirtualAndroid("pixel9", runner=lambda launching: ["sh", "-c", "echo cannot link libonnxruntime.so"]) as phone:
        desk.server.connect(phone.address)
        said = profile.measure(phone, small_bundle)
    assert said.code == 3
    assert "ended at once: cannot link libonnxruntime.so" in said.text
    assert sessions(desk.store) == []


def test_a_disk_that_fills_up_while_it_measures_is_not_the_models_fault(desk: Desk, small_bundle: Path) -> None:
    with VirtualAndroid("pixel9", runner=short_of_disk) as phone:
        run = desk.measure(phone, make_order(small_bundle, repeats=50))
    assert (run.outcome, exit_code(run)) == ("aborted", 3)
    assert (run.reason or "").startswith("storage: ")
    assert run.iterations
    assert sessions(desk.store) == []


@pytest.mark.parametrize("persona", ["pixel9", "low-ram-4gb"])
def test_a_model_that_needs_more_memory_than_there_is_has_failed_with_the_phones_own_evidence(
    desk: Desk, tmp_path: Path, persona: str
) -> None:
    """One of them tells that memory ran out; on the other it looks like any signal, and only the log says more."""
    bundle = with_parameters(build_small_bundle(tmp_path / "large"), 50_000_000_000)
    with VirtualAndroid(persona, runner="kotlin") as phone:
        run = desk.measure(phone, make_order(bundle))
        assert [kill.why for kill in phone.model.truth.kills] == ["low memory"]
    assert (run.outcome, exit_code(run)) == ("failed", 1)
    assert (run.reason or "").startswith("out_of_memory: ")
    assert run.component == "denoiser"
    assert run.processes[0].exit is not None
    assert run.processes[0].exit.kind == "low_memory"
    assert "lowmemorykiller" in run.processes[0].exit.evidence or "LOW_MEMORY" in run.processes[0].exit.evidence
    assert sessions(desk.store) == []


INSTALLATIONS = {
    "full": ("INSTALL_FAILED_INSUFFICIENT_STORAGE", 3, "cannot install"),
    "another signature": (
        "INSTALL_FAILED_UPDATE_INCOMPATIBLE: Existing package signatures do not match",
        3,
        "adb uninstall org.ondeviceprofiler.runner",
    ),
    "not allowed": ("INSTALL_FAILED_USER_RESTRICTED: Install canceled by user", 3, "cannot install"),
    "older than installed": ("INSTALL_FAILED_VERSION_DOWNGRADE", 3, "cannot install"),
    "for another processor": (
        "INSTALL_FAILED_NO_MATCHING_ABIS: Failed to extract native libraries",
        3,
        "cannot install",
    ),
    "no app at all": ("INSTALL_PARSE_FAILED_NOT_APK: Failed to parse", 2, "cannot install"),
}


@pytest.fixture(scope="module")
def pixel() -> Iterator[VirtualAndroid]:
    with VirtualAndroid("pixel9") as phone:
        yield phone


@pytest.mark.parametrize(("text", "code", "words"), INSTALLATIONS.values(), ids=INSTALLATIONS)
def test_an_installation_that_fails_says_what_to_do(
    profile: CommandLine, desk: Desk, pixel: VirtualAndroid, tmp_path: Path, text: str, code: int, words: str
) -> None:
    apk = write_apk(tmp_path / "runner.apk", "org.ondeviceprofiler.runner", 2)
    desk.server.connect(pixel.address)
    pixel.fail_next_install(text)
    said = profile.install(pixel, apk)
    assert said.code == code
    assert words in said.text
    assert text.partition(":")[0] in said.text
    assert profile.install(pixel, apk).code == 0
