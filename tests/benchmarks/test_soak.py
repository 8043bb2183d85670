"""The soak benchmark: what it counts as lost, and that a short one ends with nothing lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import soak
from benchmarks.verdicts import Load
from profiler.collecting import collect
from profiler.records.event import IterationDone
from profiler.store import RUN_FILE, Store
from tests.messages_for_tests import make_journal
from tests.sessions_for_tests import add_process, make_launch, make_session, without_images

IDLE = Load(before=0.0, after=0.0, processors=1)
GOOD = without_images(make_journal())
IMAGES = sum(isinstance(event, IterationDone) for event in GOOD)


@pytest.fixture
def run_id(store: Store) -> str:
    """One whole run in the store."""
    session = make_session(store)
    add_process(session, make_launch(), GOOD)
    return collect(store, session, ended_wall_ns=0).run_id


def missed(store: Store, seen: dict[str, int], *, bugs: int = 0) -> list[str]:
    watch = soak.Watch(store.root)
    watch.images = seen
    report = soak._report(store, watch, Counter(), bugs, 0, 1, 1.0, IDLE)
    return [verdict.what for verdict in report.verdicts if verdict.outcome == "missed"]


def test_a_store_that_holds_what_was_seen_misses_nothing(store: Store, run_id: str) -> None:
    assert missed(store, {run_id: IMAGES}) == []


def test_everything_that_is_lost_or_left_is_counted(store: Store, run_id: str) -> None:
    assert missed(store, {run_id: IMAGES, "another": 0}) == ["sessions lost"]
    assert missed(store, {}) == ["runs that no launch was seen of"]
    assert missed(store, {run_id: IMAGES + 1}) == ["runs with fewer images than their journals had"]
    assert missed(store, {run_id: IMAGES}, bugs=1) == ["hosts that ended with a bug"]
    (store.root / "sessions" / ".half.closed").mkdir()
    (store.root / "sessions" / ".half.closed" / "owner.lock").touch()
    assert missed(store, {run_id: IMAGES}) == ["files leaked"]


def test_a_run_that_cannot_be_read_is_counted(store: Store, run_id: str) -> None:
    (store.folder(run_id) / RUN_FILE).write_bytes(b"{}")
    assert missed(store, {run_id: IMAGES}) == ["runs unreadable"]


def test_a_run_that_is_there_twice_is_counted(store: Store, run_id: str, tmp_path: Path) -> None:
    twin = store.root / "runs" / "2000-01-01" / run_id
    twin.mkdir(parents=True)
    assert "runs doubled" in missed(store, {run_id: IMAGES})


def test_a_traceback_counts_once_the_program_has_begun() -> None:
    loading = 'Traceback (most recent call last):\n  File "typing.py", line 29, in <module>\nKeyboardInterrupt\n'
    begun = 'Traceback (most recent call last):\n  File "cli/__init__.py", line 28, in main\nKeyError\n'
    assert [soak._broke_in_main(said) for said in ("stopped\n", loading, begun)] == [False, False, True]


def test_a_short_soak_loses_nothing() -> None:
    report = soak.soak(3, seed=1)
    assert (report.sessions, sum(case.sessions for case in report.cases)) == (3, 3)
    assert {verdict.outcome for verdict in report.verdicts} == {"met"}
