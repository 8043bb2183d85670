"""The runner as it is inside its timed window: interpreter, begin events, samplers, and the line to the host."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from benchmarks.hand_loop import OpenEngine, Tensors
from profiler.bundle_files import inside, load_manifest, load_plan
from profiler.clock import RealClock
from profiler.journal import JOURNAL_FILE, Journal
from profiler.records.job import Sampling
from profiler.records.plan import Plan
from profiler.records.record import Task
from profiler.runner.interpreter import Interpreter
from profiler.runner.line import Line
from profiler.runner.server import send_journal
from profiler.runner.tracer import Tracer
from profiler.runner.work import JobWatcher


class ProductSide:
    """Makes images as a job does; between them it traces nothing."""

    def __init__(self, folder: Path, task: Task | None, journal: Journal, threads: int | None) -> None:
        bundle = load_manifest(folder)
        self.plan: Plan = load_plan(folder, bundle, task or ("edit" if "edit" in bundle.tasks else "generate"))
        self.inputs: Tensors = load_file(str(inside(folder, bundle.tasks[self.plan.task].defaults.path)))
        self.model = bundle.model
        self.parameters = sum(component.parameters for component in bundle.components.values())
        self.engine = OpenEngine(threads=threads)
        self._journal = journal
        clock = RealClock()
        self._tracer = Tracer(journal, Sampling(), clock)
        self._watcher = JobWatcher(journal, self._tracer.memory, threading.Event())
        self._interpreter = Interpreter(
            self.plan, bundle.components, folder, self.engine, watcher=self._watcher, clock=clock
        )
        self._interpreter.prepare()
        self._watcher.phase, self._watcher.iteration = "timed", 0

    def begin_tracing(self) -> None:
        """Start the samplers, before the timed window as a job does."""
        self._tracer.resume()

    def run(self) -> npt.NDArray[np.uint8]:
        """Make one image; this is the timed window."""
        return self._interpreter.run(self.inputs).pixels

    def end_tracing(self) -> None:
        """Stop the samplers and write their traces, as a job does between images."""
        self._tracer.pause()
        self._tracer.flush()
        self._journal.sync()

    def end(self) -> None:
        """End the samplers' threads."""
        self._tracer.end()


@contextmanager
def product_side(folder: Path, task: Task | None, storage: Path, threads: int | None) -> Iterator[ProductSide]:
    """Give the runner over a bundle, with a journal in `storage` that a host follows."""
    journal = Journal(storage / JOURNAL_FILE, "benchmark", RealClock())
    with _host_following(journal):
        side = ProductSide(folder, task, journal, threads)
        try:
            yield side
        finally:
            side.end()
            journal.close()


@contextmanager
def _host_following(journal: Journal) -> Iterator[None]:
    """Let another process read the journal's lines from a socket, until the journal closes."""
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen(["cat"], stdin=theirs.fileno(), stdout=subprocess.DEVNULL) as host:
        theirs.close()
        line = Line(ours)
        follower = threading.Thread(target=send_journal, args=(line, journal, 0), daemon=True)
        follower.start()
        try:
            yield
        finally:
            journal.close()
            follower.join()
            ours.shutdown(socket.SHUT_RDWR)
            host.wait()
