"""The Kotlin runner as a program: built when it is out of date, and how to start it."""

from __future__ import annotations

import fcntl
import functools
import subprocess
from pathlib import Path

PROJECT = Path(__file__).parents[2]
JAR = PROJECT / "build/android/virtual.jar"
# It lives for a moment: no second compiler, no collector's threads, and no statistics for other programs to read.
_JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto", "-Xmx256m")


@functools.cache
def built_jar() -> Path:
    """Return the runner's jar, compiled by `make` where a source is newer. Raises RuntimeError with make's words."""
    JAR.parent.mkdir(parents=True, exist_ok=True)
    with (JAR.parent / "jar.lock").open("w") as lock:  # test processes run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(
            ["make", "--no-print-directory", "android-jars"], cwd=PROJECT, capture_output=True, text=True
        )
    if made.returncode:
        raise RuntimeError(f"make android-jars failed: {made.stdout}{made.stderr}")
    return JAR


def runner_command(storage: Path, model_address: str, *, root: Path = Path("/")) -> list[str]:
    """Return the command that starts a runner; `model_address` is HOST:PORT of the control channel."""
    options = ["--storage", str(storage), "--root", str(root), "--model", model_address]
    return [*_JAVA, "-jar", str(built_jar()), *options]
