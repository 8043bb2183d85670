"""Session folders as runners leave them, and a device that does what a test tells it to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from profiler import codec
from profiler.bundle_files import sha256_of
from profiler.catalog import device_profile
from profiler.clock import FakeClock
from profiler.collecting import LAUNCH_FILE, process_folder
from profiler.devices.device import Ended, Place, Transfer
from profiler.journal import JOURNAL_FILE
from profiler.records.bundle import Bundle
from profiler.records.device import Conditions, Unit
from profiler.records.event import AnyEvent, Artifact, Stop
from profiler.records.job import EngineName, Job, OnDisconnect
from profiler.records.message import Receipt, RunnerHello
from profiler.records.recipe import Recipe
from profiler.records.run import Launch, ProcessExit, Session, SessionHeader
from profiler.store import SESSION_FILE, OpenSession, Store
from tests.messages_for_tests import make_journal, make_replies
from tests.runs_for_tests import make_conditions, make_run, make_unit


def make_session(store: Store, *, written: bool = True, **fields: Any) -> OpenSession:
    """Open a session whose header is that of `make_run`."""
    session = store.new_session(FakeClock())
    run = make_run(run_id=session.run_id, **fields)
    header = {name: getattr(run, name) for name in SessionHeader.__struct_fields__}
    if written:
        record = Session(**header, token="token", storage=str(session.folder / "device"))
        session.write(SESSION_FILE, codec.encode_pretty(record))
    return session


def make_launch(**fields: Any) -> Launch:
    """Return a process that said hello and left in good order."""
    launch = Launch(
        process=0,
        page_cache="dropped",
        compile="first",
        launch_ns=300_000_000,
        pid=4711,
        runner_version="0.1.0",
        engine="onnxruntime 1.23.0",
        exit_code=0,
    )
    return replace(launch, **fields)


def add_process(session: OpenSession, launch: Launch, events: Iterable[AnyEvent]) -> Path:
    """Leave behind what a runner process does; return its storage."""
    storage = process_folder(session.folder, launch.process)
    storage.mkdir(parents=True)
    session.write(LAUNCH_FILE.format(launch.process), codec.encode_pretty(launch))
    (storage / JOURNAL_FILE).write_bytes(b"".join(codec.encode(event) + b"\n" for event in events))
    return storage


def without_images(events: Sequence[AnyEvent]) -> tuple[AnyEvent, ...]:
    """Leave the image files out, and number the rest anew."""
    kept = [event for event in events if not isinstance(event, Artifact)]
    return tuple(replace(event, seq=seq) for seq, event in enumerate(kept))


class FakeLink:
    """Tells a journal's events, writing each as a runner would, and may break off with an error.

    None among the events is a moment without one.
    """

    def __init__(
        self, storage: Path, events: Iterable[AnyEvent | None], breaks: BaseException | None, sha: str | None
    ) -> None:
        self._storage, self._events, self._breaks, self._sha = storage, events, breaks, sha
        self.jobs: list[Job] = []
        self.cut = False
        self.hung_up = False

    def inspect(self, paths: tuple[str, ...]) -> tuple[Receipt, ...]:
        files = {path: self._storage / path for path in paths}
        return tuple(
            Receipt(path=path, size_bytes=1, sha256=self._sha or sha256_of(file)) for path, file in files.items()
        )

    def start(self, job: Job) -> None:
        self.jobs.append(job)

    def events(self) -> Iterator[AnyEvent | None]:
        for event in self._events:
            self.write(event)
            yield event
        if self._breaks is not None:
            raise self._breaks

    def hang_up(self) -> None:
        self.hung_up = True

    def write(self, event: AnyEvent | None) -> None:
        """Put an event into the journal."""
        if event is not None:
            with (self._storage / JOURNAL_FILE).open("ab") as journal:
                journal.write(codec.encode(event) + b"\n")


class FakeRunner:
    """A runner over a fake link."""

    def __init__(self, link: FakeLink, exit_code: int | None) -> None:
        hello = make_replies()[0]
        assert isinstance(hello, RunnerHello)
        self.link, self.hello, self.launch_ns = link, hello, 1_000_000
        self._exit_code = exit_code
        self.last_words: AnyEvent | None = None

    def end(self) -> Ended:
        self.link.write(self.last_words)
        return Ended(self._exit_code)


class FakeDevice:
    """A device without a machine; `fails_at` is the process whose launch raises `error`.

    The last process tells `events` and breaks off with `breaks`; those before it end well.
    """

    on_disconnect = OnDisconnect(kind="finish_then_exit")

    def __init__(
        self,
        *,
        fails_at: int | None = None,
        error: BaseException | None = None,
        events: Sequence[AnyEvent | None] | None = None,
        breaks: BaseException | None = None,
        breaks_at: int = 0,
        exit_code: int | None = 0,
        sees_sha256: str | None = None,
    ) -> None:
        self.profile = device_profile("local")
        self._fails_at, self._error = fails_at, error
        self._events, self._breaks, self._breaks_at, self._exit_code = events, breaks, breaks_at, exit_code
        self._sha = sees_sha256
        self.runners: list[FakeRunner] = []
        self.fetched: list[Place] = []
        self.recovered: list[Place] = []
        self.cleaned: list[str] = []
        self.closed = False
        self.found_exit: ProcessExit | None = None

    def engine_for(self, recipe: Recipe) -> EngineName:
        return {"onnx": "onnxruntime"}.get(recipe.runtime, recipe.runtime)

    def unit(self) -> Unit:
        return make_unit()

    def conditions(self, storage: Path) -> Conditions:
        assert storage.is_dir()
        return make_conditions()

    @contextlib.contextmanager
    def settled(self, tell: Callable[[str], None]) -> Iterator[None]:
        yield

    def bring(self, folder: Path, bundle: Bundle, tell: Callable[[Transfer], None]) -> str:
        return str(folder)

    def forget_files(self, files: Iterable[Path]) -> Literal["dropped", "unknown"]:
        assert all(file.is_file() for file in files)
        return "unknown"

    def launch(self, place: Place, token: str) -> FakeRunner:
        number = len(self.runners)
        if number == self._fails_at and self._error is not None:
            raise self._error
        good = without_images(make_journal())
        breaks_now = number == self._breaks_at
        events = self._events if breaks_now and self._events is not None else good
        link = FakeLink(place.folder, events, self._breaks if breaks_now else None, self._sha)
        self.runners.append(FakeRunner(link, self._exit_code if breaks_now else 0))
        return self.runners[-1]

    def fetch(self, place: Place) -> None:
        self.fetched.append(place)

    def is_at_work(self, place: Place) -> bool:
        return False

    def recover(self, place: Place) -> Ended:
        self.recovered.append(place)
        return Ended(None, self.found_exit)

    def clean(self, run_id: str) -> None:
        self.cleaned.append(run_id)

    def close(self) -> None:
        self.closed = True


def until(kind: type, count: int = 1) -> Callable[[Sequence[AnyEvent]], tuple[AnyEvent, ...]]:
    """Return a cut that keeps a journal up to so many events of a kind, without its stop."""

    def cut(events: Sequence[AnyEvent]) -> tuple[AnyEvent, ...]:
        seen, kept = 0, []
        for event in events:
            if isinstance(event, Stop) or seen == count:
                break
            seen += isinstance(event, kind)
            kept.append(event)
        return tuple(kept)

    return cut


def open_sessions(store: Store) -> list[str]:
    """Name the sessions that are open."""
    folder = store.root / "sessions"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
