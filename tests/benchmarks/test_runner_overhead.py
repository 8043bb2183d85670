"""The overhead benchmark runs and says what it should; what the numbers are is not for tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("diffusers")

from benchmarks.runner_overhead import main
from exporters.pipeline import export
from tests.exporters.read_once import read_once
from tests.exporters.small_pipelines import save_pipeline, small_recipe, spec_of


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("bundle") / "small"
    with read_once():
        export(spec_of(save_pipeline(source / "edit", "edit"), "generate", "edit"), small_recipe(), folder)
    return folder


@pytest.mark.parametrize(("task", "calls"), [("generate", 2 + 1 + 4 * 3 + 1), ("edit", 2 + 1 + 1 + 4 * 3 + 1)])
def test_two_images_give_a_report_that_resolves_nothing(
    exported: Path, task: str, calls: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--bundle", str(exported), "--task", task, "--images", "2", "--without-large", "--json"])
    report = json.loads(capsys.readouterr().out)
    (overhead,) = report["overheads"]
    assert (code, report["benchmark"]) == (1, "runner_overhead")
    assert (overhead["subject"], overhead["task"], overhead["images"], overhead["calls"]) == ("small", task, 2, calls)
    assert overhead["ratio"]["n"] == overhead["control"]["n"] == 2
    assert [verdict["outcome"] for verdict in report["verdicts"]] == ["unresolved", "unresolved"]
    assert report["load_average"]["processors"] >= 1


def test_the_table_says_unresolved_in_words(exported: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bundle", str(exported), "--images", "2", "--without-large"]) == 1
    printed = capsys.readouterr().out
    assert "hand loop / hand loop" in printed
    assert "unresolved" in printed
    assert "load average" in printed
