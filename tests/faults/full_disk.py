"""What `profile` does on a disk of a given size, in a mount namespace of its own; started by `unshare -rm`.

`full_disk.py OPTIONS FOLDER ARGUMENTS…` mounts a tmpfs with these options, measures, makes room again and lists the
runs; `read-only` and `temporary` stand for the other two cases. It prints one JSON object.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from profiler.cli import main

_PROFILE = [sys.executable, "-c", "import sys; from profiler.cli import main; sys.exit(main())"]


def profile(*arguments: str) -> dict[str, Any]:
    """Run `profile` in this process: loading everything once is enough."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    said, complained = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return {"code": code, "out": said, "err": complained}


def profile_with(environment: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Run `profile` as a shell does."""
    ended = subprocess.run(
        [*_PROFILE, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    return {"code": ended.returncode, "out": ended.stdout, "err": ended.stderr}


def mount(folder: str, options: str) -> None:
    """Mount an empty tmpfs, or change the one that is mounted there."""
    kind = [] if options.startswith("remount") else ["-t", "tmpfs"]
    subprocess.run(["mount", *kind, "-o", options, "tmpfs", folder], check=True)


def left_over(store: Path) -> list[str]:
    """List all that is not a finished run."""
    return sorted(
        str(path.relative_to(store)) for path in store.rglob("*") if path.is_file() and "runs" not in path.parts
    )


def full(folder: str, options: str, measure: Sequence[str]) -> dict[str, Any]:
    """Measure on a disk that is too small; then let it grow, and list."""
    mount(folder, options)
    store = Path(folder, "store")
    report = {
        "measured": profile(*measure, "--store", str(store)),
        "listed_when_full": profile("runs", "--store", str(store)),
    }
    mount(folder, "remount,size=64m,nr_inodes=10000")
    return {**report, "listed": profile("runs", "--json", "--store", str(store)), "left": left_over(store)}


def read_only(folder: str, measure: Sequence[str]) -> dict[str, Any]:
    """Measure, make the disk read-only, and try everything."""
    mount(folder, "size=64m")
    store = str(Path(folder, "store"))
    first = profile(*measure, "--store", store)
    mount(folder, "remount,ro")
    commands = {"measure": measure, "runs": ["runs"], "show": ["show", "last"], "doctor": ["doctor"]}
    return {"first": first, **{name: profile(*words, "--store", store) for name, words in commands.items()}}


def without_temporary(folder: str, measure: Sequence[str]) -> dict[str, Any]:
    """Measure and look around with a folder for temporary files that is full."""
    mount(folder, "size=8k")
    try:
        Path(folder, "filler").write_bytes(b"x" * 100_000)
    except OSError:
        pass  # as it should be
    return {
        name: profile_with({"TMPDIR": folder}, *words)
        for name, words in {"measure": measure, "doctor": ["doctor"]}.items()
    }


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "read-only":
        print(json.dumps(read_only(where, rest)))
    elif what == "temporary":
        print(json.dumps(without_temporary(where, rest)))
    else:
        print(json.dumps(full(where, what, rest)))
