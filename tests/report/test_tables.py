from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from profiler.report.csv_file import runs_csv, samples_csv
from profiler.report.parquet import runs_parquet, samples_parquet
from profiler.report.tables import kinds, run_rows
from tests.report.entries_for_tests import HOSTILE, edit_run, entry_of, failed_run, hostile_run


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
    assert row["prompt"] == HOSTILE
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
