"""All runs on disk: open sessions first, finished runs by day, and nothing half-written."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from profiler import codec
from profiler.bundle_files import sync_file, sync_folder, sync_tree
from profiler.clock import Clock
from profiler.errors import InputError, InvalidRecord, UnknownName
from profiler.journal import read_journal
from profiler.locks import hold
from profiler.quantities import NS_PER_MS, NS_PER_S
from profiler.records.run import Run, Session
from profiler.records.trace import ProcessTrace
from profiler.traces import trace_of

RUN_FILE = "run.json"
SESSION_FILE = "session.json"
_LOCK_FILE = "owner.lock"
_LONGEST_NAME_BYTES = 255


class OpenSession:
    """A session folder that this process owns; the lock goes with the process, however it ends."""

    def __init__(self, folder: Path, lock: IO[str]) -> None:
        self.folder = folder
        self._lock = lock

    @property
    def run_id(self) -> str:
        """Return the id that the session and its run share."""
        return self.folder.name

    def write(self, name: str, data: bytes) -> None:
        """Put a small file into the session folder, whole and flushed."""
        _write_whole(self.folder / name, data)

    def release(self) -> None:
        """Give the folder up."""
        self._lock.close()


class Store:
    """A folder of `runs/<day>/<run id>/` and of `sessions/<run id>/` that are still open."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._runs = root / "runs"
        self._sessions = root / "sessions"

    def new_session(self, clock: Clock) -> OpenSession:
        """Make and own a session folder under a new id, which sorts by time. Raises InputError."""
        try:
            self._sessions.mkdir(parents=True, exist_ok=True)
            while True:
                run_id = _new_id(clock.wall_ns())
                with contextlib.suppress(FileExistsError):
                    return self._make_session(run_id)
        except OSError as error:
            raise InputError(
                f"cannot write to the store {self.root}: {error.strerror}", hint="Name another: --store DIR"
            ) from error

    def _make_session(self, run_id: str) -> OpenSession:
        # The folder appears under its name only with its lock held: a collector never sees it without owner.
        hidden = self._sessions / f".{run_id}.new"
        hidden.mkdir()
        session = _own(hidden)
        if session is None:  # a collector took the folder before its lock was there
            raise FileExistsError(run_id)
        try:
            hidden.rename(self._sessions / run_id)
        except OSError as error:
            shutil.rmtree(hidden)
            raise FileExistsError(run_id) from error
        sync_folder(self._sessions)
        session.folder = self._sessions / run_id
        return session

    def abandoned_sessions(self) -> Iterator[OpenSession]:
        """Own, one after another, the sessions whose process is gone; the caller collects and closes them."""
        for folder in sorted(self._sessions.glob("*")) if self._sessions.is_dir() else []:
            session = _own(folder)
            if session is None:
                continue
            started = (folder / SESSION_FILE).is_file() or any(folder.glob("device/*"))
            if folder.name.startswith(".") or not started:
                self.close(session)  # died before anything was started
                continue
            yield session

    def held_sessions(self) -> int:
        """Return how many open sessions belong to commands that still run."""
        held = 0
        for folder in self._sessions.glob("[!.]*") if self._sessions.is_dir() else ():
            session = _own(folder)
            if session is None:
                held += folder.is_dir()
            else:
                session.release()
        return held

    def read_session(self, session: OpenSession) -> Session:
        """Read what an open session was about."""
        return codec.read(session.folder / SESSION_FILE, Session)

    def close(self, session: OpenSession) -> None:
        """Remove a session folder: first out of sight, so that a kill leaves nothing that looks open.

        One that was closed half-way is closed to its end.
        """
        hidden = session.folder
        if not hidden.name.startswith("."):
            hidden = session.folder.with_name(f".{session.run_id}.closed")
            if session.folder.is_dir():
                session.folder.rename(hidden)
        shutil.rmtree(hidden, ignore_errors=True)
        session.release()

    def set_aside(self, session: OpenSession) -> Path:
        """Move a session that cannot be collected out of the way, with all it holds, and give it up."""
        destination = self.root / "set-aside" / session.run_id
        destination.parent.mkdir(exist_ok=True)
        session.folder.rename(destination)
        session.release()
        return destination

    @contextlib.contextmanager
    def building_run(self, session: OpenSession) -> Iterator[Path]:
        """Give a folder inside the session to build the run in; it becomes the run by one rename."""
        building = session.folder / "run"
        shutil.rmtree(building, ignore_errors=True)
        try:
            building.mkdir()
            yield building
            sync_tree(building)
            self._move_in(building, self._run_folder(session.run_id))
        except OSError as error:
            raise InputError(
                f"cannot write run {session.run_id} into {self.root}: {error.strerror or error}",
                hint="Its session is kept; the next profile command collects it.",
            ) from error

    def _move_in(self, building: Path, destination: Path) -> None:
        if destination.exists():
            raise InvalidRecord(f"{destination} is there already")
        destination.parent.mkdir(parents=True, exist_ok=True)
        building.rename(destination)
        sync_folder(destination.parent)
        sync_folder(self._runs)

    def has_run(self, run_id: str) -> bool:
        """Tell whether a run was already built."""
        return self._run_folder(run_id).is_dir()

    def run_ids(self) -> list[str]:
        """Return the ids of all runs, oldest first."""
        folders = (path.parent for path in self._runs.glob(f"*/*/{RUN_FILE}"))
        return sorted(folder.name for folder in folders if folder == self._run_folder(folder.name))

    def find(self, name: str) -> str:
        """Return the one id that starts with `name`, or the newest for `last`. Raises UnknownName."""
        ids = self.run_ids()
        if name == "last" and ids:
            return ids[-1]
        matches = [run_id for run_id in ids if run_id.startswith(name)] if name else []
        if len(matches) > 1 and name not in matches:
            raise InputError(f"{name!r} is the start of {len(matches)} runs: {', '.join(matches[:4])} …")
        if not matches:
            raise UnknownName("run", name, ids[-20:], hint=f"See: profile runs  (store {self.root})")
        return name if name in matches else matches[0]

    def load(self, run_id: str) -> Run:
        """Read a run's record. Raises MissingSource, or InvalidRecord, also where it says that it is another run."""
        file = self.folder(run_id) / RUN_FILE
        run = codec.read(file, Run, limit_bytes=codec.MAX_RUN_BYTES)
        if run.run_id != run_id:  # names of files are made of it
            raise InvalidRecord(f"{file}: its run_id is {run.run_id[:80]!r}, not the name of its folder")
        return run

    def load_traces(self, run: Run) -> tuple[ProcessTrace, ...]:
        """Read what was sampled while a run was made, one trace a process that left a journal.

        Raises InvalidRecord where a journal is broken, or where its name leads out of the run's folder.
        """
        journals = {process.process: self._journal(run, process.journal) for process in run.processes}
        return tuple(trace_of(number, list(read_journal(path))) for number, path in journals.items() if path.is_file())

    def _journal(self, run: Run, name: str) -> Path:
        if not is_plain_name(name):
            file = self.folder(run.run_id) / RUN_FILE
            raise InvalidRecord(f"{file}: {name[:80]!r} is no name of a journal in its folder")
        return self.folder(run.run_id) / name

    def folder(self, run_id: str) -> Path:
        """Return where a run's files are."""
        return self._run_folder(run_id)

    def _run_folder(self, run_id: str) -> Path:
        day = f"{run_id[0:4]}-{run_id[4:6]}-{run_id[6:8]}"
        return self._runs / day / run_id


def journal_name(process: int) -> str:
    """Return the name under which a process's journal is kept with its run."""
    return f"events-{process}.jsonl"


def is_plain_name(name: str) -> bool:
    """Tell whether a name that others wrote is that of a file in its own folder, which any system can have."""
    return (
        name not in ("", ".", "..")
        and not any(sign in "/\\\0" for sign in name)
        and len(name.encode("utf-8", "replace")) <= _LONGEST_NAME_BYTES
    )


def _own(folder: Path) -> OpenSession | None:
    try:
        lock = hold(folder / _LOCK_FILE)
    except OSError:
        return None  # closed by its owner between listing and opening
    return OpenSession(folder, lock) if lock is not None else None


def _new_id(wall_ns: int) -> str:
    moment = datetime.fromtimestamp(wall_ns // NS_PER_S, UTC)
    milliseconds = wall_ns % NS_PER_S // NS_PER_MS
    return f"{moment:%Y%m%d-%H%M%S}-{milliseconds:03d}-{secrets.token_hex(2)}"


def _write_whole(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data)
    sync_file(temporary)
    os.replace(temporary, path)
    sync_folder(path.parent)
