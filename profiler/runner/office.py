"""What connection and work share in a runner, and what it does when its host goes away."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from profiler.clock import Clock
from profiler.errors import InternalError, ProfilerError
from profiler.journal import JOURNAL_FILE, Journal
from profiler.records.job import Job
from profiler.records.message import EXIT_HOST_GONE
from profiler.runner.line import Line


class Office:
    """What connection and work share: the storage, the job taken, its journal, and the cancel signal.

    `root` is where the device's file system begins as this process sees it; `leave` ends the process at once.
    """

    def __init__(
        self,
        storage: Path,
        engines: dict[str, str],
        clock: Clock,
        *,
        root: Path = Path("/"),
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        self.storage = storage
        self.root = root
        self.engines = engines
        self.clock = clock
        self.job: Job | None = None
        self.journal: Journal | None = None
        self.cancelled = threading.Event()
        self.taken = threading.Event()
        self.released = threading.Event()
        self._leave = leave
        self._lock = threading.Lock()
        self._host: Line | None = None
        self._timers: list[threading.Timer] = []

    def locate(self, path: str) -> Path:
        """Return where a file is that a host names: relative to the storage, or absolute on the device."""
        pure = PurePosixPath(path)
        return self.root / pure.relative_to("/") if pure.is_absolute() else self.storage / path

    def take(self, job: Job) -> None:
        """Open the job's journal. Raises ProfilerError where this runner has a job already."""
        if self.job is not None:
            raise ProfilerError("this runner serves one job in its life; start another process")
        self.journal = Journal(self.storage / JOURNAL_FILE, job.job_id, self.clock)
        self.job = job
        self.taken.set()

    def work(self) -> tuple[Job, Journal]:
        """Return the job and its journal, once `taken` is set."""
        if self.job is None or self.journal is None:
            raise InternalError("no job was taken")
        return self.job, self.journal

    def host_came(self, line: Line) -> None:
        """Take a connection for the host's, in the place of any before, and call off what its end set going."""
        with self._lock:
            former, self._host = self._host, line
            self._call_off()
        if former is not None:
            former.hang_up()

    def host_went(self, line: Line) -> None:
        """Obey the job's `on_disconnect`, unless the host talks over another connection already.

        A host that comes back in time finds the work going on; one that never handed over a job is not waited for.
        """
        with self._lock:
            if self._host is not line:
                return
            self._host = None
            if self.job is None:
                self.released.set()
            elif not self.released.is_set() and self.job.on_disconnect.kind == "stop_after_s":
                self._stop_after(self.job.on_disconnect.seconds or 0.0)

    def leave_if_idle(self) -> None:
        """Leave where there is neither a host nor a job."""
        with self._lock:
            if self._host is None and self.job is None:
                self.released.set()

    def close(self) -> None:
        """Wait for nothing any more."""
        with self._lock:
            self._call_off()

    def _stop_after(self, seconds: float) -> None:
        # A call into the runtime cannot be stopped: if it does not return, the process leaves all the same.
        self._timers = [
            threading.Timer(seconds, self.cancelled.set),
            threading.Timer(2 * seconds + 1, self._leave, args=(EXIT_HOST_GONE,)),
        ]
        for timer in self._timers:
            timer.daemon = True
            timer.start()

    def _call_off(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []
