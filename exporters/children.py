"""Makes large components one after the other, each in a process of its own, and keeps those that are done.

What an interrupted export made lies beside its destination, by component; the next export of the same goes on there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from exporters.child import MADE, ComponentJob, ImagesJob, Job, MadeComponent, Told, read_made
from exporters.progress import Stages
from profiler import errors
from profiler.errors import InputError, InternalError, ModelError, ProfilerError, first_line
from profiler.locks import hold
from profiler.quantities import format_bytes
from profiler.records.bundle import ImageDifference
from profiler.records.record import Task

# Below this a process's own start takes longer than what it gives back.
CHILD_FROM_PARAMETERS = 50_000_000
_SAMPLE_S = 0.1
_LOG_LINES = 5


class Making(NamedTuple):
    """What making a component took: `peak_bytes` is the process's largest RssAnon + RssShmem, as sampled."""

    wall_s: float
    peak_bytes: int


# A component's name, and what it took.
TellMaking = Callable[[str, Making], None]


def say_nothing(part: str, making: Making) -> None:
    """Tell nobody."""


class Children:
    """Does steps of one export; `folder` is where components that are done wait for the rest."""

    def __init__(self, folder: Path, stages: Stages, tell: TellMaking = say_nothing) -> None:
        self._folder = folder
        self._stages = stages
        self._tell = tell

    def make(self, job: ComponentJob) -> tuple[MadeComponent, Path]:
        """Make a component, or find it done; return it and the folder that holds its files.

        Raises what the child raised, or ModelError where it was killed.
        """
        ready = self._folder / f"{job.part}-{_digest(job)}"
        if read_made(ready) is None:
            for stale in self._folder.glob(f"{job.part}-*"):  # of other weights or another recipe, or broken
                shutil.rmtree(stale, ignore_errors=True)
            self._run(job.part, msgspec.structs.replace(job, destination=str(ready)))
        else:
            self._stages.begin(f"{job.part} was made before")
        made = read_made(ready)
        if made is None:
            raise InternalError(f"the process for {job.part} ended well, but left nothing in {ready}")
        return made, ready

    def compare_images(self, job: ImagesJob) -> dict[Task, ImageDifference]:
        """Compare whole images. Raises what the child raised, or ModelError where it was killed."""
        images = self._run("images", job).images
        if images is None:
            raise InternalError("the process that compares images ended well, but told nothing")
        return images

    def _run(self, name: str, job: Job) -> Told:
        """Run a job to its end and return the last that it told."""
        begin, killed = time.monotonic(), _oom_kills()
        with self._tidied(), tempfile.TemporaryFile("w+", errors="replace") as log, _started(log) as child:
            peak = Peak(partial(resident_bytes, child.pid))
            try:
                last = self._follow(child, job)
                child.wait()
            finally:
                peak.end()
            making = Making(time.monotonic() - begin, peak.end())
            self._tell(name, making)
            if last.error is not None:
                raise _error(last)
            if child.returncode:
                raise _ended(name, child.returncode, making.peak_bytes, _oom_kills() > killed, log)
        return last

    @contextlib.contextmanager
    def _tidied(self) -> Iterator[None]:
        """Remove what a child left half-done; nobody else works in the folder."""
        try:
            yield
        finally:
            for left in self._folder.glob(".*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    def _follow(self, child: subprocess.Popen[str], job: Job) -> Told:
        """Hand over the job, pass on what the child tells, and return the last of it."""
        if child.stdin is None or child.stdout is None:
            raise InternalError("a child was started without pipes")
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(msgspec.json.encode(job).decode() + "\n")
            child.stdin.flush()
        told, begun = Told(), -1
        for line in child.stdout:
            try:
                told = msgspec.json.decode(line, type=Told)
            except msgspec.DecodeError:  # cut off: its end says why
                break
            if told.stage and told.error is None:
                (self._stages.begin if told.done > begun else self._stages.note)(told.stage)
                begun = max(begun, told.done)
        return told


@contextlib.contextmanager
def _started(log: IO[str]) -> Iterator[subprocess.Popen[str]]:
    """Start a child; it ends with the block, at once, as what it has not finished is removed anyway."""
    command = [sys.executable, "-m", "exporters.child"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, encoding="utf-8"
    ) as child:
        try:
            yield child
        finally:
            child.kill()


class Peak:
    """Reads a number of bytes, such as a process's memory, again and again from a thread, and keeps the largest."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read
        self._largest = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """Return the largest that was seen."""
        self._ended.set()
        self._thread.join()
        return self._largest

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            self._largest = max(self._largest, self._read())


def resident_bytes(pid: int | str) -> int:
    """Return RssAnon + RssShmem of a process (or "self"): what cannot be shared or dropped; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))


def _oom_kills() -> int:
    """Return how often the kernel has killed for want of memory since it started; 0 where it does not tell."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _error(told: Told) -> ProfilerError:
    """Return a child's error as its own kind where that is made from a message alone."""
    kind = getattr(errors, told.error or "", InternalError)
    if kind in (errors.UnknownName, errors.MissingExtra):
        kind = errors.InputError
    found: ProfilerError = kind(told.stage, hint=told.hint)
    return found


def _ended(part: str, code: int, peak_bytes: int, oom: bool, log: IO[str]) -> ProfilerError:
    """Say how a child ended that told no error."""
    if code == -signal.SIGKILL:
        by = "by the kernel, which was out of memory" if oom else "(SIGKILL), as the kernel does when out of memory"
        return ModelError(
            f"the process that made {part} was killed {by}; it had reached {format_bytes(peak_bytes)}",
            hint="Free memory or use a machine with more; components that are done are kept for the next try.",
        )
    log.seek(0)
    tail = "\n".join(log.read().strip().splitlines()[-_LOG_LINES:])
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return InternalError(f"the process that made {part} ended with {how}:\n{tail}")


def _digest(job: ComponentJob) -> str:
    """Return what tells jobs apart, wherever their result goes."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(job, destination=""))).hexdigest()[:16]


@contextlib.contextmanager
def alone(destination: Path) -> Iterator[Path]:
    """Give the folder for a destination's components, to one export at a time; it is gone once the bundle is there.

    Raises InputError where another process is at it, or nothing can be written.
    """
    folder = destination.with_name(f".{destination.name}.parts")
    lock_file = destination.with_name(f".{destination.name}.exporting")
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        lock = hold(lock_file)
    except OSError as error:
        raise InputError(
            f"cannot write to {destination.parent}: {first_line(error)}", hint="Name another folder with --out."
        ) from error
    if lock is None:
        raise InputError(
            f"{destination} is being exported by another process",
            hint="Wait for it, or name another folder with --out.",
        )
    with lock:
        try:
            yield folder
            shutil.rmtree(folder, ignore_errors=True)
        except (ProfilerError, KeyboardInterrupt) as error:
            if _is_worth_keeping(folder):
                _say_kept(
                    error, f"What is done waits in {folder}: the same command goes on there; remove it to begin anew."
                )
            raise
        finally:
            if not _is_worth_keeping(folder):
                shutil.rmtree(folder, ignore_errors=True)
            lock_file.unlink(missing_ok=True)


def _say_kept(error: ProfilerError | KeyboardInterrupt, kept: str) -> None:
    """Give an error a further hint; one without hints a note."""
    if isinstance(error, ProfilerError):
        error.hint = f"{error.hint} {kept}" if error.hint else kept
    else:
        error.add_note(kept)


def _is_worth_keeping(folder: Path) -> bool:
    """Tell whether any component is done."""
    return any(folder.glob(f"*/{MADE}"))


def bring(ready: Path, folder: Path) -> None:
    """Put a component's files into a bundle's folder, without their bytes being copied where that can be."""
    for path in sorted(path for path in ready.rglob("*") if path.is_file() and path.name != MADE):
        target = folder / path.relative_to(ready)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, target)
        except OSError:
            shutil.copyfile(path, target)
