from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from profiler.cli import main
from profiler.cli.writing import write_whole
from profiler.records.job import Measurement
from profiler.store import RUN_FILE, Store
from tests.cli.conftest import COMMAND, Measured
from tests.cli.test_showing import add_run, rewrite
from tests.report.entries_for_tests import failed_run
from tests.runs_for_tests import make_samples

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
    (here / "deep/er").mkdir(parents=True)
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


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("file/a.md", "cannot write file/a.md: there is no folder file"),
        ("new/a.md", "cannot write new/a.md: there is no folder new"),
        (f"{'x' * 300}.md", "File name too long"),
        ("pipe.md", "pipe.md is no plain file"),
        ("dangling.md", "dangling.md is a link"),
        ("linked.md", "linked.md is a link"),
    ],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_place_that_no_report_can_have_is_named_and_nothing_is_written(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str], place: str, said: str, force: list[str]
) -> None:
    add_run(store, 0)
    (here / "file").write_text("mine")
    os.mkfifo(here / "pipe.md")
    (here / "dangling.md").symlink_to("nowhere")
    (here / "linked.md").symlink_to("file")
    before = sorted(here.iterdir())
    assert report(store, "-o", "first.md", "-o", place, *force) == 2
    assert said in capsys.readouterr().err
    assert sorted(here.iterdir()) == before
    assert (here / "file").read_text() == "mine"


def test_figures_are_overwritten_only_by_force_and_before_that_nothing_is_written(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = add_run(store, 0)
    taken = here / "figures" / f"{run.run_id}-latency.png"
    taken.parent.mkdir()
    taken.write_text("mine")
    assert report(store, "-o", "a.md", "--png", "figures") == 2
    assert f"{taken.name} is there already" in capsys.readouterr().err
    assert [path.name for path in (*here.iterdir(), *taken.parent.iterdir())] == ["figures", taken.name]
    assert report(store, "--png", "figures", "--force") == 0
    assert taken.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("folder", "said"), [("file", "file is no folder"), ("no/figures", "there is no folder no")])
def test_figures_go_into_a_folder_whose_own_is_there(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str], folder: str, said: str
) -> None:
    add_run(store, 0)
    (here / "file").write_text("mine")
    assert report(store, "--png", folder) == 2
    assert said in capsys.readouterr().err


def test_all_files_are_written_whatever_becomes_of_stdout(store: Store, here: Path) -> None:
    add_run(store, 0)
    reading, writing = os.pipe()
    os.close(reading)
    wanted = ["-o", "a.md", "-o", "b.csv", "--png", "figures"]
    subprocess.run([*COMMAND, "report", "--store", str(store.root), *wanted], stdout=writing, check=True, cwd=here)
    os.close(writing)
    assert sorted(path.name for path in here.iterdir()) == ["a.md", "b.csv", "figures"]
    assert len(list((here / "figures").iterdir())) == 3


def test_a_file_may_have_the_longest_name_there_is(store: Store, here: Path) -> None:
    add_run(store, 0)
    name = f"{'x' * 252}.md"
    assert report(store, "-o", name) == 0
    assert [path.name for path in here.iterdir()] == [name]


def test_whatever_ends_a_write_leaves_nothing(here: Path) -> None:
    with pytest.raises(TypeError):  # as a signal is, no error of the disk
        write_whole(here / "a.md", "words")  # type: ignore[arg-type]
    assert list(here.iterdir()) == []


def test_a_name_that_is_no_text_is_written_and_told_as_far_as_it_is(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(store, 0)
    assert report(store, "-o", os.fsdecode(b"\xff.md"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["path"] == "?.md"
    assert [os.fsencode(path.name) for path in here.iterdir()] == [b"\xff.md"]


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
    store = Store(measured.store)
    sampled = any(len(trace.memory) > 1 for trace in store.load_traces(store.load(store.run_ids()[-1])))
    memory = {"memory"} if sampled else set()  # a run this short may end before its memory was read twice
    assert names == {"limits", "latency", "stages", "environment"} | memory


def test_parquet_without_its_extra_says_how_to_install_it(store: Store, here: Path) -> None:
    add_run(store, 0)
    hide = "import sys; sys.modules['pyarrow'] = None; "
    command = [COMMAND[0], "-c", hide + COMMAND[2], "report", "--store", str(store.root), "-o", "a.parquet"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here)
    assert ended.returncode == 2
    assert "ondevice-profiler[analysis]" in ended.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"measurement": Measurement(kind="spaced")},
        {"iterations": (*make_samples()[3:], *make_samples(process=1)[:3])},  # the clock of the second ran back
    ],
    ids=["spaced without a gap", "clock ran back"],
)
@pytest.mark.parametrize("place", ["show", "report"])
def test_a_record_that_can_be_read_but_not_be_summed_up_is_named(
    store: Store, here: Path, capsys: pytest.CaptureFixture[str], place: str, fields: dict[str, Any]
) -> None:
    run = add_run(store, 0, **fields)
    assert main([place, run.run_id, "--store", str(store.root)]) == 2
    said = capsys.readouterr().err
    assert f"{store.folder(run.run_id) / RUN_FILE}: cannot be summed up" in said
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("wall_ns", [10**21, -(10**21)])
def test_a_clock_outside_the_calendar_is_told_and_no_bug(store: Store, here: Path, wall_ns: int) -> None:
    run = add_run(store, 0)
    rewrite(store, replace(run, started_wall_ns=wall_ns, ended_wall_ns=wall_ns))
    assert report(store, "-o", "a.html", "-o", "a.md", "-o", "a.csv", "-o", "a.json") == 0
    assert "outside the calendar" in (here / "a.html").read_text()
