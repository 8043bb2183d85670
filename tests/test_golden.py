"""Files of every format: read, summed up and rendered by today's code (tests/golden/README.md)."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from profiler import codec
from profiler.catalog import policy
from profiler.cli import main
from profiler.records.bundle import Bundle
from profiler.records.job import Job
from profiler.records.plan import Plan
from profiler.records.record import SCHEMA_VERSION
from profiler.records.run import Launch, Session
from profiler.report.csv_file import runs_csv, samples_csv
from profiler.report.entry import Entry
from profiler.report.html import page
from profiler.report.markdown import markdown
from profiler.report.parquet import runs_parquet, samples_parquet
from profiler.report.perfetto import perfetto
from profiler.report.summary import summarise
from profiler.report.terminal import render
from profiler.store import SESSION_FILE, Store

GOLDEN = Path(__file__).parent / "golden"
FORMATS = sorted(path for path in GOLDEN.glob("format-*"))
RUNS = [(folder.name, run_id) for folder in FORMATS for run_id in Store(folder / "store").run_ids()]


def entry_of(form: str, run_id: str) -> Entry:
    store = Store(GOLDEN / form / "store")
    run, folder = store.load(run_id), store.folder(run_id)
    return Entry(run, summarise(run, folder, policy("moi-bench")), store.load_traces(run), folder)


def test_there_are_files_of_every_format() -> None:
    assert [path.name for path in FORMATS] == [f"format-{number}" for number in range(1, SCHEMA_VERSION + 1)]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_each_format_has_runs_of_each_ending(form: Path) -> None:
    store = Store(form / "store")
    runs = [store.load(run_id) for run_id in store.run_ids()]
    assert [(run.outcome, run.task) for run in runs] == [
        ("completed", "generate"),
        ("completed", "edit"),
        ("failed", "generate"),
        ("interrupted", "generate"),
    ]
    assert {run.schema_version for run in runs} == {int(form.name.removeprefix("format-"))}


@pytest.mark.parametrize(("form", "run_id"), RUNS)
def test_a_golden_run_is_summed_up_and_rendered_in_every_format(form: str, run_id: str) -> None:
    entry = entry_of(form, run_id)
    assert entry.traces
    assert render(entry.summary) is not None
    assert run_id in page([entry], "0")
    assert run_id in runs_csv([entry])
    assert samples_csv([entry]).count("\r\n") == 1 + len(entry.run.iterations)
    assert markdown([entry]).startswith("# ")
    assert runs_parquet([entry])[:4] == samples_parquet([entry])[:4] == b"PAR1"
    assert len(json.loads(perfetto([entry]))["traceEvents"]) > len(entry.run.iterations)


def test_runs_of_all_formats_stand_side_by_side() -> None:
    entries = [entry_of(form, run_id) for form, run_id in RUNS]
    assert f"{len(entries)} runs side by side" in page(entries, "0")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_what_lies_beside_the_runs_is_read(form: Path) -> None:
    assert codec.read(form / "session" / SESSION_FILE, Session).run_id
    assert [codec.read(path, Launch).process for path in sorted(form.glob("session/launch-*.json"))] == [0, 1]
    assert codec.read(form / "bundle" / "bundle.json", Bundle).tasks
    assert {codec.read(form / "bundle" / f"{task}.json", Plan).task for task in ("generate", "edit")}
    assert codec.read(form / "job.json", Job).plan.task == "generate"


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_a_session_left_open_by_an_old_version_is_collected(
    form: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = codec.read(form / "session" / SESSION_FILE, Session)
    shutil.copytree(form / "session", tmp_path / "sessions" / session.run_id)
    path = tmp_path / "sessions" / session.run_id / SESSION_FILE
    path.write_bytes(path.read_bytes().replace(session.storage.encode(), str(path.parent / "device").encode()))
    assert main(["runs", "--json", "--store", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert f"collected run {session.run_id}" in printed.err
    assert json.loads(printed.out)["outcome"] == "interrupted"


def test_no_golden_file_was_changed() -> None:
    lines = [line.split("  ", 1) for line in (GOLDEN / "SHA256SUMS").read_text().splitlines()]
    kept = {name: sha256 for sha256, name in lines}
    found = {
        str(path.relative_to(GOLDEN)): hashlib.sha256(path.read_bytes()).hexdigest()
        for form in FORMATS
        for path in form.rglob("*")
        if path.is_file()
    }
    assert found == kept


def test_golden_files_tell_nothing_of_the_machine_they_were_made_on() -> None:
    texts = [path.read_text() for form in FORMATS for path in form.rglob("*.json*")]
    assert not [text for text in texts if "/tmp/" in text or "/root" in text or "/work/" in text]
