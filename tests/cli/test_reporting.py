from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.store import RUN_FILE, Store
from tests.cli.conftest import COMMAND, Measured
from tests.cli.test_showing import add_run
from tests.report.entries_for_tests import failed_run

MAGIC = {
    ".html": b"<!doctype html>",
    ".csv": b"run_id,",
    ".md": b"# ",
    ".json": b'{"displayTimeUnit"',
    ".parquet": b"PAR1",
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def report(store: Store, *arguments: str) -> int:
    return main(["report", *arguments, "--store", str(store.root)])


def test_without_a_name_the_newest_run_becomes_a_page_here(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = [add_run(store, day) for day in range(2)][1]
    assert report(store) == 0
    assert capsys.readouterr().out == f"report-{run.run_id}.html\n"
    assert [path.name for path in here.iterdir()] == [f"report-{run.run_id}.html"]
    assert run.run_id in (here / f"report-{run.run_id}.html").read_text()


def test_the_ending_is_the_format(store: Store, here: Path) -> None:
    add_run(store, 0)
    names = [*(f"a{ending}" for ending in MAGIC), "a.samples.csv", "a.samples.parquet", "deep/er/B.HTML"]
    assert report(store, *(word for name in names for word in ("-o", name))) == 0
    for name in names:
        data = (here / name).read_bytes().lstrip()
        assert data.startswith(MAGIC[Path(name).suffix.lower()]), name
    assert (here / "a.csv").read_text().count("\n") == 2
    assert (here / "a.samples.csv").read_text().count("\n") == 7


@pytest.mark.parametrize("name", ["a.pdf", "html", ".html", "a.csv.gz", ""])
def test_an_ending_that_is_no_format_is_refused_with_those_that_are(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    add_run(store, 0)
    assert report(store, "-o", "good.csv", "-o", name) == 2
    assert ".html, .samples.csv, .csv, .samples.parquet, .parquet, .md, .json" in capsys.readouterr().err
    assert list(here.iterdir()) == []


def test_a_file_that_is_there_is_overwritten_only_by_force(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(store, 0)
    (here / "a.md").write_text("mine")
    assert report(store, "-o", "b.md", "-o", "a.md") == 2
    assert "a.md is there already" in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["a.md"]
    assert (here / "a.md").read_text() == "mine"
    assert report(store, "-o", "a.md", "--force") == 0
    assert (here / "a.md").read_text().startswith("# ")


def test_a_folder_is_never_overwritten(store: Store, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(store, 0)
    (here / "a.md").mkdir()
    assert report(store, "-o", "a.md", "--force") == 2
    assert "a.md is a folder" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_named_and_nothing_is_left(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(store, 0)
    (here / "file").write_text("")
    assert report(store, "-o", "file/a.md") == 2
    assert "cannot write file/a.md" in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["file"]


def test_json_is_one_object_a_file(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [add_run(store, day) for day in range(2)]
    ids = [run.run_id for run in runs]
    assert report(store, *ids, "-o", "a.csv", "-o", "a.md", "--png", "figures", "--json") == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["format"] for each in printed][:3] == ["csv", "md", "png"]
    assert all(Path(each["path"]).stat().st_size == each["size_bytes"] for each in printed)
    assert printed[0]["runs"] == ids
    names = {Path(each["path"]).name for each in printed[2:]}
    assert names == {"comparison.png"} | {
        f"{run_id}-{name}.png" for run_id in ids for name in ("limits", "latency", "stages")
    }


def test_a_run_may_be_named_by_the_start_of_its_id_and_counts_once(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    run = add_run(store, 0)
    assert report(store, run.run_id[:12], "last", run.run_id, "-o", "a.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["runs"] == [run.run_id]
    assert report(store, "1999", "-o", "b.csv") == 2


def test_a_failed_run_has_a_report(store: Store, here: Path) -> None:
    failed = failed_run()
    add_run(
        store, 0, outcome=failed.outcome, reason=failed.reason, iterations=(), processes=failed.processes, images=()
    )
    assert report(store, "-o", "a.html", "-o", "a.csv", "-o", "a.md", "-o", "a.json", "-o", "a.parquet") == 0
    assert "Tier none: the run failed." in (here / "a.html").read_text()


def test_a_broken_journal_costs_the_traces_and_not_the_report(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run = add_run(store, 0)
    (store.folder(run.run_id) / run.processes[0].journal).write_bytes(b'{"event":"nonsense"}\n')
    assert report(store, "-o", "a.html") == 0
    assert "without traces" in capsys.readouterr().err


def test_a_record_that_cannot_be_read_ends_with_2(store: Store, here: Path) -> None:
    run = add_run(store, 0)
    (store.folder(run.run_id) / RUN_FILE).write_bytes(b"{")
    assert report(store, "-o", "a.html") == 2
    assert list(here.iterdir()) == []


def test_a_tier_is_judged_as_asked(store: Store, here: Path) -> None:
    add_run(store, 0, iterations=())
    assert report(store, "-o", "a.md", "--not-required", "latency") == 0
    assert "Tier D4" in (here / "a.md").read_text()


def test_a_run_that_was_measured_has_every_figure(measured: Measured, here: Path) -> None:
    assert main(["report", "--store", str(measured.store), "-o", "a.html", "--png", "figures"]) == 0
    names = {path.stem.rsplit("-", 1)[1] for path in (here / "figures").iterdir()}
    assert names == {"limits", "latency", "stages", "memory", "environment"}


def test_parquet_without_its_extra_says_how_to_install_it(store: Store, here: Path) -> None:
    add_run(store, 0)
    hide = "import sys; sys.modules['pyarrow'] = None; "
    command = [COMMAND[0], "-c", hide + COMMAND[2], "report", "--store", str(store.root), "-o", "a.parquet"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    assert ended.returncode == 2
    assert "ondevice-profiler[analysis]" in ended.stderr
    assert list(here.iterdir()) == []
