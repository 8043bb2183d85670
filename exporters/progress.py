"""What an export tells while it works."""

from __future__ import annotations

from collections.abc import Callable

# Stage name, stages done, stages in all as far as known.
Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


class Stages:
    """Counts an export's stages and tells each one as it begins."""

    def __init__(self, tell: Progress = silent, total: int = 1) -> None:
        self._tell = tell
        self._total = total
        self._done = 0

    def expect(self, more: int) -> None:
        """Add stages that have become known."""
        self._total += more

    def begin(self, stage: str) -> None:
        """Tell that a stage begins, and that all before it are done."""
        self._tell(stage, self._done, self._total)
        self._done += 1

    def finish(self) -> None:
        """Tell that nothing is left to do."""
        self._tell("done", self._done, self._done)
