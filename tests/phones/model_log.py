"""What the system writes down: log lines, and why processes ended."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

_LINES = 5000
_EXITS = 16  # the package keeps that many

EXIT_SELF, SIGNALED, LOW_MEMORY, CRASH, CRASH_NATIVE, ANR = 1, 2, 3, 4, 5, 6
USER_REQUESTED = 10

# ApplicationExitInfo's names as dumpsys prints them.
EXIT_NAMES = {
    EXIT_SELF: "EXIT_SELF",
    SIGNALED: "SIGNALED",
    LOW_MEMORY: "LOW_MEMORY",
    CRASH: "APP CRASH(EXCEPTION)",
    CRASH_NATIVE: "APP CRASH(NATIVE)",
    ANR: "ANR",
    USER_REQUESTED: "USER REQUESTED",
}
FORCE_STOP = 21
SUBREASON_NAMES = {0: "UNKNOWN", FORCE_STOP: "FORCE STOP"}


class LogLine(NamedTuple):
    """One line of logcat; `wall_ns` is the phone's time of day."""

    buffer: str
    wall_ns: int
    pid: int
    level: str
    tag: str
    text: str


class Exit(NamedTuple):
    """One ended process as ApplicationExitInfo keeps it; sizes in bytes as they were last sampled."""

    wall_ns: int
    pid: int
    uid: int
    package: str
    reason: int
    subreason: int
    status: int
    importance: int
    pss_bytes: int
    rss_bytes: int
    description: str | None


class SystemLog:
    """The log buffers main, system, events and crash, oldest lines lost first."""

    def __init__(self) -> None:
        self._lines: deque[LogLine] = deque(maxlen=_LINES)

    def write(self, line: LogLine) -> None:
        """Append a line."""
        self._lines.append(line)

    def lines(self, buffers: frozenset[str]) -> list[LogLine]:
        """Return the lines of some buffers, in order."""
        return [line for line in self._lines if line.buffer in buffers]

    def clear(self) -> None:
        """Forget everything, as a reboot does."""
        self._lines.clear()


class ExitHistory:
    """Why the processes of each package ended, newest first; survives a reboot."""

    def __init__(self) -> None:
        self._by_package: dict[str, deque[Exit]] = {}

    def add(self, record: Exit) -> None:
        """Note an end."""
        self._by_package.setdefault(record.package, deque(maxlen=_EXITS)).appendleft(record)

    def of(self, package: str) -> tuple[Exit, ...]:
        """Return what is known of a package."""
        return tuple(self._by_package.get(package, ()))

    def packages(self) -> tuple[str, ...]:
        """Return the packages of which a process ended."""
        return tuple(sorted(self._by_package))
