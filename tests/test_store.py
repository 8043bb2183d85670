from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler import codec
from profiler.clock import FakeClock
from profiler.errors import InputError, InvalidRecord, UnknownName
from profiler.quantities import NS_PER_MS, NS_PER_S
from profiler.store import RUN_FILE, SESSION_FILE, OpenSession, Store, _new_id
from tests.runs_for_tests import make_process, make_run

_HOLD = """
import sys
from pathlib import Path
from profiler.clock import RealClock
from profiler.store import Store
session = Store(Path(sys.argv[1])).new_session(RealClock())
session.write("session.json", b"{}")
print(session.run_id, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_process(store: Store) -> Iterator[Callable[[], tuple[str, subprocess.Popen[str]]]]:
    """Start processes that open a session each and hold it."""
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[str, subprocess.Popen[str]]:
        command = [sys.executable, "-c", _HOLD, str(store.root)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip(), process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def session(store: Store) -> Iterator[OpenSession]:
    """A session of this process."""
    session = store.new_session(FakeClock())
    yield session
    session.release()


def keep_run(store: Store, session: OpenSession) -> str:
    """Build the least that is a run, and close its session."""
    with store.building_run(session) as building:
        run = make_run(run_id=session.run_id)
        (building / RUN_FILE).write_bytes(codec.encode_pretty(run))
    store.close(session)
    return session.run_id


def new_run(store: Store, wall_ns: int = 1_700_000_000 * NS_PER_S) -> str:
    return keep_run(store, store.new_session(FakeClock(wall_ns=wall_ns)))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@given(st.lists(st.integers(0, 4_000_000_000_000), min_size=2, max_size=20, unique=True))
def test_ids_sort_by_time(milliseconds: list[int]) -> None:
    ids = [_new_id(moment * NS_PER_MS) for moment in milliseconds]
    assert sorted(ids) == [run_id for _, run_id in sorted(zip(milliseconds, ids, strict=True))]


def test_ids_of_one_moment_are_unique_across_threads(store: Store) -> None:
    clock, sessions = FakeClock(), []

    def open_some() -> None:
        for _ in range(25):
            sessions.append(store.new_session(clock))

    threads = [threading.Thread(target=open_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({session.run_id for session in sessions}) == 100
    assert names_in(store.root / "sessions") == sorted(session.run_id for session in sessions)
    for session in sessions:
        store.close(session)
    assert names_in(store.root / "sessions") == []


def test_a_run_lies_in_the_folder_of_its_day(store: Store) -> None:
    run_id = new_run(store)
    assert run_id.startswith("20231114-221320-000-")
    assert store.folder(run_id) == store.root / "runs" / "2023-11-14" / run_id
    assert store.load(run_id).run_id == run_id


def test_an_empty_store_has_no_runs_and_makes_no_folder(store: Store) -> None:
    assert store.run_ids() == []
    assert list(store.abandoned_sessions()) == []
    assert not store.root.exists()


def test_runs_are_listed_oldest_first(store: Store) -> None:
    ids = [new_run(store, moment * NS_PER_S) for moment in (1_700_200_000, 1_700_000_000, 1_700_100_000)]
    assert store.run_ids() == [ids[1], ids[2], ids[0]]


def test_a_run_is_found_by_its_id_its_start_or_as_the_last(store: Store) -> None:
    first, second = (new_run(store, moment * NS_PER_S) for moment in (1_700_000_000, 1_700_100_000))
    assert store.find(first) == first
    assert store.find(second[:12]) == second
    assert store.find("last") == second


def test_the_start_of_several_runs_is_ambiguous(store: Store) -> None:
    ids = [new_run(store) for _ in range(2)]
    with pytest.raises(InputError, match="is the start of 2 runs") as caught:
        store.find("2023")
    assert all(run_id in str(caught.value) for run_id in ids)


@pytest.mark.parametrize("name", ["", "2024", "../runs", "*", "LAST"])
def test_a_name_that_is_the_start_of_no_run_is_unknown(store: Store, name: str) -> None:
    new_run(store)
    with pytest.raises(UnknownName, match="unknown run"):
        store.find(name)


def test_the_last_of_no_runs_is_unknown(store: Store) -> None:
    with pytest.raises(UnknownName, match="profile runs"):
        store.find("last")


def test_a_session_of_this_process_is_not_abandoned(store: Store) -> None:
    session = store.new_session(FakeClock())
    session.write(SESSION_FILE, b"{}")
    assert list(store.abandoned_sessions()) == []
    session.release()
    (found,) = store.abandoned_sessions()
    assert found.run_id == session.run_id
    found.release()


def test_a_session_is_abandoned_once_its_process_is_gone_however_it_ended(
    store: Store, other_process: Callable[[], tuple[str, subprocess.Popen[str]]]
) -> None:
    (held, _), (killed, process) = other_process(), other_process()
    assert list(store.abandoned_sessions()) == []
    process.kill()
    process.wait()
    (found,) = store.abandoned_sessions()
    assert found.run_id == killed
    found.release()
    assert (store.root / "sessions" / held).is_dir()


def test_an_abandoned_session_has_one_collector_at_a_time(store: Store) -> None:
    session = store.new_session(FakeClock())
    session.write(SESSION_FILE, b"{}")
    session.release()
    (owned,) = store.abandoned_sessions()
    assert list(store.abandoned_sessions()) == []
    owned.release()


def test_a_session_that_died_before_it_was_written_down_is_removed(store: Store) -> None:
    store.new_session(FakeClock()).release()
    (store.root / "sessions" / ".20231114-221320-000-dead.new").mkdir()
    (store.root / "sessions" / ".20231114-221320-000-beef.closed").mkdir()
    assert list(store.abandoned_sessions()) == []
    assert names_in(store.root / "sessions") == []


def test_a_file_of_a_session_is_written_whole(store: Store, session: OpenSession) -> None:
    session.write("note", b"one")
    session.write("note", b"two")
    assert (session.folder / "note").read_bytes() == b"two"
    assert names_in(session.folder) == ["note", "owner.lock"]


def test_a_folder_that_is_not_where_a_run_would_be_is_no_run(store: Store) -> None:
    stray = store.root / "runs" / "x" / "y"
    stray.mkdir(parents=True)
    (stray / RUN_FILE).write_text("{}")
    assert store.run_ids() == []


def test_a_session_set_aside_keeps_all_it_holds(store: Store, session: OpenSession) -> None:
    session.write("evidence", b"here")
    folder = store.set_aside(session)
    assert folder == store.root / "set-aside" / session.run_id
    assert (folder / "evidence").read_bytes() == b"here"
    assert names_in(store.root / "sessions") == []
    assert list(store.abandoned_sessions()) == []


def test_a_run_appears_whole_or_not_at_all(store: Store, session: OpenSession) -> None:

    def fail_half_way() -> None:
        with store.building_run(session) as building:
            (building / "image.png").write_bytes(b"half")
            raise InvalidRecord("no more")

    with pytest.raises(InvalidRecord, match="no more"):
        fail_half_way()
    assert store.run_ids() == []
    assert not store.has_run(session.run_id)
    assert keep_run(store, session) == session.run_id
    assert not (store.folder(session.run_id) / "image.png").exists()


def test_a_run_is_never_written_over_another(store: Store, session: OpenSession) -> None:
    store.folder(session.run_id).mkdir(parents=True)
    (store.folder(session.run_id) / "mine").write_bytes(b"kept")
    with pytest.raises(InvalidRecord, match="is there already"):
        keep_run(store, session)
    assert names_in(store.folder(session.run_id)) == ["mine"]


def test_a_store_that_cannot_be_written_is_the_users_to_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match="cannot write to the store") as caught:
        Store(tmp_path / "file" / "store").new_session(FakeClock())
    assert "--store" in str(caught.value)


def test_a_run_that_cannot_be_moved_in_keeps_its_session(store: Store, session: OpenSession) -> None:
    (store.root / "runs").write_bytes(b"a file where the folder should be")
    with pytest.raises(InputError, match="Its session is kept"):
        keep_run(store, session)
    assert session.folder.is_dir()


def test_a_record_that_says_it_is_another_run_is_refused(store: Store) -> None:
    run_id = new_run(store)
    file = store.folder(run_id) / RUN_FILE
    file.write_bytes(codec.encode_pretty(make_run(run_id="../../elsewhere")))
    with pytest.raises(InvalidRecord, match=re.escape(f"{file}: its run_id is '../../elsewhere'")):
        store.load(run_id)


@pytest.mark.parametrize("name", ["..", "", "../../secret", "/etc/passwd", "a\0b", "a\\b", "x" * 5000])
def test_a_journal_is_a_file_in_the_folder_of_its_run(store: Store, name: str) -> None:
    run = make_run(run_id=new_run(store), processes=(make_process(journal=name),))
    with pytest.raises(InvalidRecord, match="is no name of a journal"):
        store.load_traces(run)


def test_sessions_of_commands_that_still_run_are_counted_and_left_to_them(store: Store) -> None:
    mine, gone = store.new_session(FakeClock()), store.new_session(FakeClock())
    gone.release()
    assert store.held_sessions() == 1
    assert store.held_sessions() == 1
    mine.release()
    assert store.held_sessions() == 0
