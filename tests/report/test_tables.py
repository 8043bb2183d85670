from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from msgspec.structs import replace

from profiler.errors import InvalidRecord
from profiler.records.event import StageTime
from profiler.report.csv_file import page_samples_csv, runs_csv, samples_csv
from profiler.report.parquet import runs_parquet, samples_parquet
from profiler.report.tables import kinds, run_rows
from tests.report.entries_for_tests import HOSTILE, edit_run, entry_of, failed_run, hostile_run
from tests.runs_for_tests import make_run, make_sample, make_settings


def read_back(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_run_is_one_row_with_units_in_the_names(tmp_path: Path) -> None:
    entry = entry_of(edit_run(), tmp_path)
    (row,) = read_back(runs_csv([entry]))
    assert row["latency_n"] == "25"
    assert float(row["latency_median_ns"]) == 412e6
    assert row["stage_median_ns.denoise"]
    assert row["size_bytes.denoiser"] == str(entry.run.bundle.size_by_component["denoiser"])
    assert (row["task"], row["tier"], row["is_phone"]) == ("edit", "D4", "false")


def test_what_was_not_measured_is_empty_and_never_0(tmp_path: Path) -> None:
    (row,) = read_back(runs_csv([entry_of(failed_run(), tmp_path)]))
    assert [row[name] for name in ("latency_median_ns", "peak_memory_bytes", "load_median_ns")] == ["", "", ""]
    assert row["outcome"] == "failed"


def test_images_are_one_row_each_in_order_with_all_digits(tmp_path: Path) -> None:
    entry = entry_of(edit_run(), tmp_path)
    rows = read_back(samples_csv([entry]))
    assert [int(row["duration_ns"]) for row in rows] == [sample.duration_ns for sample in entry.run.iterations]
    assert [row["phase"] for row in rows][:3] == ["cold", "warmup", "timed"]
    assert {row["run_id"] for row in rows} == {entry.run.run_id}


def test_columns_of_unlike_runs_are_all_there(tmp_path: Path) -> None:
    entries = [entry_of(edit_run(), tmp_path / "a"), entry_of(hostile_run(), tmp_path / "b")]
    rows = read_back(samples_csv(entries))
    assert rows[0]["stage_ns.=1+1"] == ""
    assert rows[-1]["stage_ns.denoise"] == ""


def test_a_spreadsheet_takes_no_words_for_a_formula(tmp_path: Path) -> None:
    (row,) = read_back(runs_csv([entry_of(hostile_run(), tmp_path)]))
    assert row["negative_prompt"] == "'=HYPERLINK(1)"
    assert row["prompt"] == HOSTILE.replace("\x1b", "�")
    cells = [cell for line in csv.reader(io.StringIO(runs_csv([entry_of(hostile_run(), tmp_path)]))) for cell in line]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t"))]


def test_a_type_does_not_depend_on_what_was_measured(tmp_path: Path) -> None:
    measured, failed = (list(run_rows([entry_of(run, tmp_path)])) for run in (edit_run(), failed_run()))
    for name, kind in kinds(failed).items():
        assert kinds(measured)[name] is kind, name


def test_parquet_keeps_types_and_reads_back(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    entries = [entry_of(edit_run(), tmp_path), entry_of(failed_run(), tmp_path)]
    runs = parquet.read_table(io.BytesIO(runs_parquet(entries)))
    assert runs.column("latency_median_ns").to_pylist() == [412e6, None]
    assert {str(runs.schema.field(name).type) for name in ("seed", "is_phone", "model")} == {"int64", "bool", "string"}
    samples = parquet.read_table(io.BytesIO(samples_parquet(entries)))
    assert samples.num_rows == len(entries[0].run.iterations)


def test_no_sign_in_a_table_steers_a_terminal(tmp_path: Path) -> None:
    run = make_run(model="a\x1b[31m\r\t\x07\nb", reason="=1\x1b")
    entry = entry_of(run, tmp_path)
    (row,) = read_back(runs_csv([entry]))
    assert (row["model"], row["reason"]) == ("a�[31m���\nb", "'=1�")
    stages = (StageTime(stage="\x1b]0;", duration_ns=1),)
    hostile = entry_of(replace(run, iterations=(make_sample(stages=stages),)), tmp_path)
    for text in (runs_csv([hostile]), samples_csv([hostile]), page_samples_csv(hostile.run)):
        assert "\x1b" not in text


def test_what_was_asked_for_in_words_is_not_repeated_beside_each_image(tmp_path: Path) -> None:
    entry = entry_of(make_run(settings=make_settings(prompt="word " * 1000, negative_prompt="none " * 1000)), tmp_path)
    assert "word word" in runs_csv([entry])
    assert "word" not in samples_csv([entry])
    assert "none none" not in samples_csv([entry])
    head = page_samples_csv(entry.run).splitlines()[0]
    assert head == "run_id,image,phase,process,iteration,start_boot_ns,duration_ns,gap_ns,traced," + ",".join(
        [*(f"stage_ns.{stage.stage}" for stage in entry.run.iterations[0].stages), "image_sha256"]
    )


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_a_number_beyond_a_typed_column_is_refused_there_and_kept_in_csv(tmp_path: Path, number: int) -> None:
    pytest.importorskip("pyarrow")
    entry = entry_of(make_run(settings=make_settings(seed=number)), tmp_path)
    with pytest.raises(InvalidRecord, match=f"run {entry.run.run_id}: seed is beyond"):
        runs_parquet([entry])
    assert read_back(runs_csv([entry]))[0]["seed"].strip("'") == str(number)
