"""What an export tells while it works."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

# Stage name, stages done, stages in all as far as known.
Progress = Callable[[str, int, int], None]
HEARTBEAT_S = 15.0


def silent(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


class Stages:
    """Counts an export's stages and tells each one as it begins."""

    def __init__(self, tell: Progress = silent, total: int = 1) -> None:
        self._tell = tell
        self._total = total
        self._done = 0
        self._stage = ""

    def expect(self, more: int) -> None:
        """Add stages that have become known."""
        self._total += more

    def begin(self, stage: str) -> None:
        """Tell that a stage begins, and that all before it are done."""
        self._tell(stage, self._done, self._total)
        self._stage = stage
        self._done += 1

    def note(self, text: str) -> None:
        """Tell more of the stage that has begun."""
        self._tell(text, self._done - 1, self._total)

    @contextlib.contextmanager
    def heartbeat(self, every_s: float = HEARTBEAT_S) -> Iterator[None]:
        """Tell, from a thread, for how long the stage has been going on, while a toolchain that says nothing works."""
        ended = threading.Event()
        thread = threading.Thread(target=self._beat, args=(ended, every_s), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def finish(self) -> None:
        """Tell that nothing is left to do."""
        self._tell("done", self._done, self._done)

    def _beat(self, ended: threading.Event, every_s: float) -> None:
        start_s = time.monotonic()
        while not ended.wait(every_s):
            self.note(f"{self._stage}, {time.monotonic() - start_s:.0f} s")
