from __future__ import annotations

import resource
import threading
from pathlib import Path

import pytest

from profiler import codec
from profiler.clock import FakeClock
from profiler.errors import InvalidRecord
from profiler.journal import JOURNAL_FILE, Journal, read_journal
from profiler.records.event import Begin, Idle
from tests.messages_for_tests import make_journal
from tests.records_for_tests import make_memory


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / JOURNAL_FILE, "job", FakeClock(boot_ns=5))


def append_begin(journal: Journal, stage: str = "denoiser") -> Begin:
    return journal.append(Begin, phase="timed", iteration=0, stage=stage, component=None)


def write_lines(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def whole_lines() -> list[bytes]:
    return [codec.encode(event) + b"\n" for event in make_journal()]


def test_what_was_appended_is_read_back_in_order_with_the_clock_of_the_device(journal: Journal) -> None:
    events = [journal.append(Idle, memory=make_memory()), append_begin(journal), append_begin(journal)]
    assert list(read_journal(journal.path)) == events
    assert [(event.seq, event.device_boot_ns, event.job_id) for event in events] == [
        (0, 5, "job"),
        (1, 5, "job"),
        (2, 5, "job"),
    ]


def test_an_event_is_on_disk_before_append_returns(journal: Journal) -> None:
    append_begin(journal)
    assert journal.path.read_bytes().count(b"\n") == 1


def test_a_torn_last_line_ends_the_journal_without_an_error(tmp_path: Path) -> None:
    lines = whole_lines()
    path = write_lines(tmp_path / JOURNAL_FILE, *lines[:3], lines[3][:-10])
    assert list(read_journal(path)) == list(make_journal()[:3])


def test_a_last_line_that_lacks_only_its_end_counts_as_torn(tmp_path: Path) -> None:
    lines = whole_lines()
    path = write_lines(tmp_path / JOURNAL_FILE, lines[0], lines[1].rstrip(b"\n"))
    assert len(list(read_journal(path))) == 1


def test_a_journal_torn_at_any_byte_gives_a_prefix_of_its_events(tmp_path: Path) -> None:
    events, data = make_journal(), b"".join(whole_lines())
    for length in range(0, len(data), 37):
        path = write_lines(tmp_path / JOURNAL_FILE, data[:length])
        found = tuple(read_journal(path))
        assert found == events[: data[:length].count(b"\n")]


def test_a_broken_line_in_the_middle_is_an_error_that_names_file_and_line(tmp_path: Path) -> None:
    lines = whole_lines()
    path = write_lines(tmp_path / JOURNAL_FILE, lines[0], b'{"event":"beg\n', lines[2])
    with pytest.raises(InvalidRecord, match=rf"{JOURNAL_FILE}:2"):
        list(read_journal(path))


def test_a_gap_in_the_numbering_is_an_error_that_says_which_event_is_missing(tmp_path: Path) -> None:
    lines = whole_lines()
    path = write_lines(tmp_path / JOURNAL_FILE, lines[0], lines[2])
    with pytest.raises(InvalidRecord, match="event 2 where 1 was due"):
        list(read_journal(path))


def test_an_empty_journal_holds_no_events(journal: Journal) -> None:
    assert list(read_journal(journal.path)) == []


def test_nothing_follows_the_last_event_of_a_closed_journal(journal: Journal) -> None:
    append_begin(journal)
    journal.close()
    journal.close()
    append_begin(journal)
    assert journal.closed
    assert len(list(read_journal(journal.path))) == 1


def test_a_journal_never_continues_the_file_of_another_job(journal: Journal) -> None:
    with pytest.raises(FileExistsError):
        Journal(journal.path, "another", FakeClock())


def test_events_of_several_threads_are_whole_lines_numbered_without_gaps(journal: Journal) -> None:
    def append_many(stage: str) -> None:
        for _ in range(200):
            append_begin(journal, stage)

    threads = [threading.Thread(target=append_many, args=(name,)) for name in ("work", "trace")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = list(read_journal(journal.path))
    assert [event.seq for event in events] == list(range(400))
    assert {event.stage for event in events if isinstance(event, Begin)} == {"work", "trace"}


def test_a_full_disk_leaves_no_torn_line_and_an_event_that_finds_room_follows(journal: Journal) -> None:
    append_begin(journal)
    whole = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The nearest to a full disk that needs no root: files of this process may not grow beyond that.
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size + 20, whole[1]))
    try:
        with pytest.raises(OSError, match="No space left"):
            append_begin(journal)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, whole)
    assert journal.path.read_bytes().count(b"\n") == 1
    assert journal.path.read_bytes().endswith(b"\n")
    append_begin(journal)
    assert [event.seq for event in read_journal(journal.path)] == [0, 1]
