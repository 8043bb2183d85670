from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image

from profiler import codec
from profiler.collecting import SOURCE_IMAGE, Ending, collect
from profiler.errors import InvalidRecord
from profiler.journal import JOURNAL_FILE
from profiler.records.event import AnyEvent, Artifact, Begin, IterationDone, LoadDone, Stop
from profiler.records.run import ProcessExit, Run
from profiler.store import OpenSession, Store
from tests.messages_for_tests import make_failed_journal, make_journal
from tests.runs_for_tests import make_settings
from tests.sessions_for_tests import add_process, make_launch, make_session, until, without_images

GOOD = without_images(make_journal())


def collected(store: Store, *processes: Sequence[AnyEvent], ending: Ending | None = None, **launch: object) -> Run:
    """Collect a session of these processes; `launch` is about the last one."""
    session = make_session(store, settings=make_settings(cold_starts=max(1, len(processes))))
    for number, events in enumerate(processes):
        last = number == len(processes) - 1
        add_process(session, make_launch(process=number, **(launch if last else {})), events)
    return collect(store, session, ended_wall_ns=1_750_000_100_000_000_000, ending=ending)


def test_a_run_never_ends_before_it_began(store: Store) -> None:
    session = make_session(store)
    add_process(session, make_launch(), GOOD)
    run = collect(store, session, ended_wall_ns=0)
    assert run.ended_wall_ns == run.started_wall_ns


def test_a_session_that_ended_well_is_a_completed_run_and_its_folder_is_gone(store: Store) -> None:
    run = collected(store, GOOD)
    assert (run.outcome, run.reason, run.stage, run.component) == ("completed", None, None, None)
    assert store.load(run.run_id) == run
    assert list((store.root / "sessions").iterdir()) == []


def test_images_of_all_processes_are_kept_in_order(store: Store) -> None:
    run = collected(store, GOOD, GOOD)
    assert [(sample.process, sample.phase) for sample in run.iterations] == [
        (0, "cold"),
        (0, "timed"),
        (1, "cold"),
        (1, "timed"),
    ]
    assert [process.process for process in run.processes] == [0, 1]
    assert [process.first_image_ns for process in run.processes] == [520_000_000, 520_000_000]


def test_journals_and_logs_lie_beside_the_run(store: Store) -> None:
    session = make_session(store)
    storage = add_process(session, make_launch(), GOOD)
    (storage / "runner.log").write_bytes(b"a warning\n")
    journal = (storage / JOURNAL_FILE).read_bytes()
    run = collect(store, session, ended_wall_ns=0)
    folder = store.folder(run.run_id)
    assert (folder / run.processes[0].journal).read_bytes() == journal
    assert (folder / "runner-0.log").read_bytes() == b"a warning\n"


def test_a_journal_without_an_end_tells_where_a_killed_process_was(store: Store) -> None:
    cut = until(Begin, 8)(GOOD)
    run = collected(store, cut, exit_code=-9)
    begun = [event for event in cut if isinstance(event, Begin)][-1]
    assert run.outcome == "failed"
    assert (run.reason or "").startswith("runner_died: killed by signal 9")
    assert (run.stage, run.component) == (begun.stage, begun.component)


@pytest.mark.parametrize(
    ("exit_code", "outcome", "words"),
    [
        (-9, "failed", "SIGKILL"),
        (-6, "failed", "SIGABRT"),
        (-11, "failed", "SIGSEGV"),
        (-7, "failed", "killed by signal 7"),
        (1, "aborted", "runner_ended: exit code 1, see its log"),
        (None, "interrupted", "the host went away"),
    ],
)
def test_the_exit_code_says_how_a_process_without_an_end_ended(
    store: Store, exit_code: int | None, outcome: str, words: str
) -> None:
    run = collected(store, until(IterationDone)(GOOD), exit_code=exit_code)
    assert run.outcome == outcome
    assert words in (run.reason or "")
    assert len(run.iterations) == 1


def test_a_process_without_an_end_has_no_peak_but_keeps_what_it_loaded(store: Store) -> None:
    run = collected(store, until(LoadDone, 2)(GOOD), exit_code=-9)
    (process,) = run.processes
    assert process.memory is None
    assert process.idle_memory is not None
    assert set(process.load_ns_by_component) == {"text_encoder", "denoiser"}
    assert process.first_image_ns is None


def test_a_failure_in_the_journal_counts_before_what_the_host_saw(store: Store) -> None:
    run = collected(store, make_failed_journal(), ending=Ending("aborted", "the cable went", None, None))
    assert run.outcome == "failed"
    assert (run.reason or "").startswith("out_of_memory")
    assert (run.stage, run.component) == ("denoise", "denoiser")


@pytest.mark.parametrize("signal", [1, 2, 15])
def test_a_runner_that_was_sent_away_is_no_fault_of_the_models(store: Store, signal: int) -> None:
    run = collected(store, until(Begin, 8)(GOOD), exit_code=-signal)
    assert (run.outcome, run.reason) == ("aborted", f"runner_stopped: somebody sent it signal {signal}")


def test_what_the_host_saw_counts_where_the_journals_show_no_failure(store: Store) -> None:
    cut = until(Begin, 8)(GOOD)
    run = collected(store, GOOD, cut, ending=Ending("interrupted", "stopped by the user", None, None))
    assert (run.outcome, run.reason) == ("interrupted", "stopped by the user")
    assert run.processes[0].outcome == "completed"


def test_a_session_whose_journals_are_all_complete_is_completed_whatever_the_host_saw_after(store: Store) -> None:
    run = collected(store, GOOD, ending=Ending("aborted", "the runner closed the connection", None, None))
    assert (run.outcome, run.reason) == ("completed", None)


def test_processes_that_never_started_make_a_run_interrupted(store: Store) -> None:
    session = make_session(store, settings=make_settings(cold_starts=3))
    add_process(session, make_launch(), GOOD)
    run = collect(store, session, ended_wall_ns=0)
    assert (run.outcome, run.reason) == ("interrupted", "the host went away after 1 of 3 processes")


def test_a_process_that_wrote_nothing_is_told_of_all_the_same(store: Store) -> None:
    run = collected(store, GOOD, (), exit_code=None, pid=None)
    assert [process.last_seq for process in run.processes] == [len(GOOD) - 1, -1]
    assert run.outcome == "interrupted"


def test_a_torn_last_line_does_not_stop_collecting(store: Store) -> None:
    session = make_session(store)
    storage = add_process(session, make_launch(exit_code=-9), until(IterationDone)(GOOD))
    with (storage / JOURNAL_FILE).open("ab") as journal:
        journal.write(b'{"event":"iterat')
    assert len(collect(store, session, ended_wall_ns=0).iterations) == 1


def test_a_broken_journal_leaves_the_session_as_it_is(store: Store) -> None:
    session = make_session(store)
    storage = add_process(session, make_launch(), GOOD)
    (storage / JOURNAL_FILE).write_bytes(b"no journal\n" * 3)
    with pytest.raises(InvalidRecord, match=JOURNAL_FILE):
        collect(store, session, ended_wall_ns=0)
    assert session.folder.is_dir()
    assert store.run_ids() == []
    session.release()


def test_a_plan_that_loads_for_each_image_is_cold_only_the_first_time(store: Store) -> None:
    slow, quick = 90_000_000, 1_000_000
    first = [replace(event, duration_ns=slow) if isinstance(event, LoadDone) else event for event in GOOD[:-1]]
    again = [replace(event, duration_ns=quick) for event in GOOD if isinstance(event, LoadDone)]
    events = [replace(event, seq=seq) for seq, event in enumerate([*first, *again, GOOD[-1]])]
    run = collected(store, events)
    assert set(run.processes[0].load_ns_by_component.values()) == {slow}


def image_of(colour: int) -> bytes:
    return b"P6\n2 1\n255\n" + bytes([colour] * 6)


def write_image(storage: Path, data: bytes) -> Artifact:
    (storage / "cold-0.ppm").write_bytes(data)
    announced = next(event for event in make_journal() if isinstance(event, Artifact))
    return replace(announced, path="cold-0.ppm", sha256=hashlib.sha256(data).hexdigest())


def with_image(session: OpenSession, process: int, data: bytes, **announced: str) -> Path:
    """Leave behind a process that made an image; return its storage."""
    storage = add_process(session, make_launch(process=process), ())
    events = [*GOOD[:-1], replace(write_image(storage, data), **announced), GOOD[-1]]
    numbered = [replace(event, seq=seq) for seq, event in enumerate(events)]
    (storage / JOURNAL_FILE).write_bytes(b"".join(codec.encode(event) + b"\n" for event in numbered))
    return storage


def test_the_same_image_of_several_processes_is_kept_once_as_png(store: Store) -> None:
    session = make_session(store, settings=make_settings(cold_starts=3))
    for process, colour in enumerate((50, 50, 200)):
        with_image(session, process, image_of(colour))
    run = collect(store, session, ended_wall_ns=0)
    assert len(run.images) == 2
    for image in run.images:
        with Image.open(store.folder(run.run_id) / image.path) as picture:
            assert (picture.format, picture.size) == ("PNG", (2, 1))


def test_an_image_other_than_the_announced_one_is_not_kept(store: Store) -> None:
    session = make_session(store)
    storage = with_image(session, 0, image_of(50))
    (storage / "cold-0.ppm").write_bytes(b"P6\n2 1\n255\n" + bytes(6))
    with pytest.raises(InvalidRecord, match="is not the image that the runner announced"):
        collect(store, session, ended_wall_ns=0)
    session.release()


@pytest.mark.parametrize(
    "data", [b"", b"no image", b"P6\n400 400\n255\nxyz", b"P6\n60000 60000\n255\nxyz", b"P6\n0 0\n255\n"]
)
def test_a_file_that_is_no_image_leaves_the_session_as_it_is(store: Store, data: bytes) -> None:
    session = make_session(store)
    with_image(session, 0, data)
    with pytest.raises(InvalidRecord, match=r"cold-0\.ppm is no image that can be read"):
        collect(store, session, ended_wall_ns=0)
    session.release()


@pytest.mark.parametrize("path", ["../cold-0.ppm", "/etc/hostname", "a\\0b", "a" * 5000, ""])
def test_an_image_outside_of_the_runners_folder_is_none(store: Store, path: str) -> None:
    session = make_session(store)
    storage = with_image(session, 0, image_of(50), path=path)
    (storage / "cold-0.ppm").replace(storage.parent / "cold-0.ppm")
    with pytest.raises(InvalidRecord, match="is no name of an image"):
        collect(store, session, ended_wall_ns=0)
    session.release()


def test_the_source_image_of_an_edit_is_kept_with_the_run(store: Store) -> None:
    session = make_session(store)
    picture = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(picture, "PNG")
    session.write(SOURCE_IMAGE, picture.getvalue())
    add_process(session, make_launch(), GOOD)
    run = collect(store, session, ended_wall_ns=0)
    (image,) = run.images
    assert (image.path, image.role) == (SOURCE_IMAGE, "source")
    assert image.deviation_levels == 0
    assert (store.folder(run.run_id) / image.path).read_bytes() == picture.getvalue()


def test_a_session_whose_run_was_already_built_is_only_closed(store: Store) -> None:
    session = make_session(store)
    add_process(session, make_launch(), GOOD)
    first = collect(store, session, ended_wall_ns=1)
    again = store.root / "sessions" / first.run_id
    second = make_session(store)
    second.folder.rename(again)
    second.folder = again
    assert collect(store, second, ended_wall_ns=2) == first
    assert list((store.root / "sessions").iterdir()) == []


def test_readings_of_the_temperature_are_summed_up_over_all_processes(store: Store) -> None:
    run = collected(store, GOOD, GOOD)
    assert run.max_temperature_millicelsius == 36_500
    assert run.temperature_reason is None


def test_a_run_without_a_reading_of_the_temperature_says_why(store: Store) -> None:
    run = collected(store, until(LoadDone)(GOOD), exit_code=-9)
    assert run.max_temperature_millicelsius is None
    assert run.temperature_reason == "no reading during the run"


@pytest.mark.parametrize(
    ("kind", "outcome", "word"),
    [
        ("low_memory", "failed", "out_of_memory"),
        ("native_crash", "failed", "runner_died"),
        ("not_responding", "failed", "runner_died"),
        ("stopped", "aborted", "runner_stopped"),
        ("restarted", "aborted", "runner_stopped"),
    ],
)
def test_what_the_devices_system_says_of_a_killed_process_is_kept(
    store: Store, kind: str, outcome: str, word: str
) -> None:
    told = ProcessExit(kind=kind, detail="so it says", signal=9, resident_bytes=4_000_000_000, evidence="lmkd: …")
    run = collected(store, until(Begin, 6)(GOOD), exit_code=None, exit=told)
    assert (run.outcome, run.reason, run.component) == (outcome, f"{word}: so it says", "denoiser")
    assert run.processes[0].exit == told


def test_a_good_stop_holds_though_the_process_was_killed_afterwards(store: Store) -> None:
    assert isinstance(GOOD[-1], Stop)
    assert collected(store, GOOD, exit_code=-9).outcome == "completed"
