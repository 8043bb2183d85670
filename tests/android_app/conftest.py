from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.clock import Deadline, RealClock
from profiler.devices.link import Link, connect
from profiler.records.message import ADDRESS_FILE, TOKEN_FILE
from tests.android_app.jar import runner_command
from tests.android_app.stand_in_model import Before, StandInModel

TOKEN = "0123456789abcdef"
_PATIENCE_S = 60.0


class KotlinRunner:
    """A runner process; `address` is a phone's model, in whose place there is a stand-in otherwise.

    `prefix` is a program that starts it in its own way.
    """

    def __init__(
        self, storage: Path, root: Path, *, before: Before | None, prefix: tuple[str, ...], address: str | None
    ) -> None:
        self.storage = storage
        storage.mkdir()
        (storage / TOKEN_FILE).write_text(TOKEN)
        self.model = StandInModel(before)
        command = [*prefix, *runner_command(storage, address or self.model.address, root=root)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self._links: list[Link] = []
        self._limit = Deadline(_PATIENCE_S, RealClock())  # a test that fails must not wait for ever

    def alive(self) -> bool:
        """Tell whether the process is there, and the test not overdue."""
        return self.process.poll() is None and not self._limit.passed()

    def link(self) -> Link:
        """Connect and greet."""
        link = self.stranger()
        link.hello(TOKEN)
        return link

    def stranger(self) -> Link:
        """Connect and say nothing."""
        self._links.append(connect(self.port(), self.alive))
        return self._links[-1]

    def port(self) -> int:
        """Wait for the runner's address."""
        address = self.storage / ADDRESS_FILE
        while not address.exists() and self.alive():
            RealClock().sleep(0.01)
        port: int = json.loads(address.read_bytes())["port"]
        return port

    def exit_code(self) -> int:
        """Wait for the end of the process."""
        return self.process.wait(timeout=_PATIENCE_S)

    def end(self) -> None:
        """Hang up, and kill what is left."""
        for link in self._links:
            link.close()
        self.process.kill()
        self.process.communicate()
        self.model.close()


class Runners:
    """Starts runners, each in a storage of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[KotlinRunner] = []

    def start(
        self, *, before: Before | None = None, prefix: tuple[str, ...] = (), address: str | None = None
    ) -> KotlinRunner:
        """Start one whose device's files begin in `folder / "root"`."""
        storage = self.folder / f"storage-{len(self.started)}"
        self.started.append(KotlinRunner(storage, self.folder / "root", before=before, prefix=prefix, address=address))
        return self.started[-1]


@pytest.fixture
def runners(tmp_path: Path) -> Iterator[Runners]:
    made = Runners(tmp_path)
    yield made
    for runner in made.started:
        runner.end()
