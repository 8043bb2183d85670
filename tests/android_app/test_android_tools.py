"""What `make android` says where something it needs is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.android_app.jar import PROJECT

_SHELL_TOOLS = ("sh", "sed", "dirname", "command")


def told(
    folder: Path, *, tools: tuple[str, ...], junit: str = "/dev/null/junit4.jar"
) -> subprocess.CompletedProcess[str]:
    """Run the check as a user who is not root and has only these programs."""
    for name in (*_SHELL_TOOLS, *tools):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(Path(found).resolve())
    (folder / "id").write_text("#!/bin/sh\necho 1000\n")
    (folder / "id").chmod(0o755)
    command = [str(folder / "sh"), str(PROJECT / "scripts/android_tools.sh"), junit]
    return subprocess.run(command, env={"PATH": str(folder)}, capture_output=True, text=True)


def test_one_line_names_all_that_is_missing_and_how_to_install_it(tmp_path: Path) -> None:
    answer = told(tmp_path, tools=())
    assert answer.returncode == 1
    (line,) = answer.stderr.splitlines()
    assert line.startswith(
        "make android needs a JDK of 17 or newer, npm, junit4 (JUNIT=junit.jar:hamcrest.jar); on Debian: "
    )
    assert "apt-get install openjdk-17-jdk-headless" in line


@pytest.mark.skipif(any(shutil.which(name) is None for name in ("java", "npm")), reason="no JDK or npm here")
def test_what_only_some_tests_use_is_named_and_stops_nothing(tmp_path: Path) -> None:
    junit = tmp_path / "junit4.jar"
    junit.touch()
    answer = told(tmp_path, tools=("java", "npm"), junit=f"{junit}:hamcrest.jar")
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == "not there, so that some tests of virtual phones are left out: mksh toybox adb\n"
