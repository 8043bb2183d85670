"""A run made once through the command line, and a cache of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

COMMAND = [sys.executable, "-c", "import sys; from profiler.cli import main; sys.exit(main())"]
LEAST = ["--cold-starts", "1", "--warmups", "0", "--repeats", "3", "--observer-pairs", "0", "--threads", "1"]

Profile = Callable[..., "subprocess.CompletedProcess[str]"]


class Measured(NamedTuple):
    """What `profile --json` printed, and the store it used."""

    ended: subprocess.CompletedProcess[str]
    store: Path


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep what the product remembers out of the user's own folders."""
    folder, patch = tmp_path_factory.mktemp("cache"), pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(folder))
    patch.delenv("PROFILER_STORE", raising=False)
    yield folder
    patch.undo()


@pytest.fixture(scope="session")
def profile() -> Profile:
    """Run `profile` as a process of its own, as a shell does."""

    def run(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            env={**os.environ, **(environment or {})},
        )

    return run


@pytest.fixture(scope="session")
def measured(small_bundle: Path, tmp_path_factory: pytest.TempPathFactory, profile: Profile) -> Measured:
    """The main job, once."""
    store = tmp_path_factory.mktemp("cli") / "store"
    ended = profile("--device", "local", "--model", str(small_bundle), "--store", str(store), "--json", *LEAST)
    return Measured(ended, store)
