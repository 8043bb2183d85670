"""The disk fills up at every write, or cannot be written at all: an error that says so, and nothing lost or torn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import LEAST

NAMESPACE = ["unshare", "--map-root-user", "--mount"]
PROGRAM = str(Path(__file__).with_name("full_disk.py"))


def _can_mount() -> bool:
    try:
        probe = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(
    not _can_mount(), reason="needs user namespaces that may mount (unshare --map-root-user --mount)"
)


def on_disk(what: str, folder: Path, bundle: Path) -> dict[str, dict[str, Any]]:
    folder.mkdir()
    command = [*NAMESPACE, sys.executable, PROGRAM, what, str(folder), "--model", str(bundle), "--json", *LEAST]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    report: dict[str, dict[str, Any]] = json.loads(ended.stdout)
    assert "Traceback" not in ended.stdout
    return report


# What is full when: measured with the small bundle, whose session and run take 60 KiB and 22 files.
@pytest.mark.parametrize(
    ("options", "outcomes"),
    [
        ("size=4k", []),  # the session
        ("size=8k", []),  # the inputs
        ("size=12k", ["interrupted"]),  # the launch
        ("size=24k", ["interrupted"]),  # the journal
        ("size=48k", ["completed"]),  # the run
        ("size=64m,nr_inodes=4", []),  # the session, for want of inodes
        ("size=64m,nr_inodes=14", ["aborted"]),  # the image
    ],
)
def test_a_disk_that_is_full_loses_nothing_and_tears_nothing(
    small_bundle: Path, tmp_path: Path, options: str, outcomes: list[str]
) -> None:
    report = on_disk(options, tmp_path / "disk", small_bundle)
    measured, listed = report["measured"], report["listed"]
    assert measured["code"] == 2
    assert "No space left on device" in measured["err"]
    assert json.loads(measured["out"])["error"]["kind"] == "input"
    assert report["listed_when_full"]["code"] == 0
    assert (listed["code"], report["left"]) == (0, [])
    found = [json.loads(line) for line in listed["out"].splitlines()]
    # Where the first journal lines go depends on the samples in them: a run may get a little further.
    assert [run["outcome"] for run in found] in (outcomes, ["aborted"] if outcomes else [], ["completed"])
    assert ("Its session is kept" in measured["err"]) == bool(found)


def test_a_store_that_is_read_only_can_be_read_and_says_why_not_more(small_bundle: Path, tmp_path: Path) -> None:
    report = on_disk("read-only", tmp_path / "disk", small_bundle)
    assert report["first"]["code"] == 0
    assert report["measure"]["code"] == 2
    assert "cannot write to the store" in report["measure"]["err"]
    assert "Read-only file system" in report["measure"]["err"]
    assert (report["runs"]["code"], report["show"]["code"]) == (0, 0)
    assert "completed" in report["runs"]["out"]
    assert report["doctor"]["code"] == 3
    assert "Read-only" in " ".join(report["doctor"]["out"].split())


def test_a_full_folder_for_temporary_files_is_no_bug(small_bundle: Path, tmp_path: Path) -> None:
    report = on_disk("temporary", tmp_path / "disk", small_bundle)
    assert report["measure"]["code"] in (0, 2)
    assert report["doctor"]["code"] in (0, 2, 3)
