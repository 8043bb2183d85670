from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import profiler
from profiler.errors import MissingSource, UnknownName
from profiler.store import Store
from tests.cli.test_showing import add_run
from tests.report.entries_for_tests import failed_run
from tests.runs_for_tests import make_samples

pd = pytest.importorskip("pandas", reason="the analysis extra")
ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "format-1" / "store"


@pytest.fixture
def runs(store: Store) -> Store:
    failed = failed_run()
    add_run(store, 0)
    add_run(store, 1, outcome="failed", reason=failed.reason, iterations=(), processes=failed.processes, images=())
    return store


def test_runs_are_rows_oldest_first_with_missing_values_missing(runs: Store) -> None:
    frame = profiler.load_runs(runs.root)
    assert frame["run_id"].tolist() == runs.run_ids()
    assert frame["latency_median_ns"].isna().tolist() == [False, True]
    assert frame["latency_n"].tolist() == [6, 0]
    assert frame["tier"].tolist() == ["D4", "none"]
    assert str(frame["started"].dtype) == "datetime64[us, UTC]"


def test_types_do_not_depend_on_what_was_measured(store: Store, runs: Store, tmp_path: Path) -> None:
    only_failed = Store(tmp_path / "other")
    failed = failed_run()
    add_run(only_failed, 0, outcome="failed", reason="x", iterations=(), processes=failed.processes, images=())
    types = profiler.load_runs(only_failed.root).dtypes
    assert (types == profiler.load_runs(runs.root).dtypes[types.index]).all()


def test_images_are_rows_in_the_order_made(store: Store) -> None:
    run = add_run(store, 0, iterations=make_samples((3, 1, 2)))
    frame = profiler.load_samples(store.root)
    assert frame["duration_ns"].tolist() == [3, 1, 2]
    assert set(frame["run_id"]) == {run.run_id}
    assert frame["stage_ns.denoise"].dtype == "Int64"


def test_readings_are_rows_of_one_run() -> None:
    frame = profiler.load_traces(GOLDEN, Store(GOLDEN).run_ids()[0])
    assert list(frame.columns) == ["process", "device_boot_ns", "gauge", "value"]
    assert frame.groupby("process")["device_boot_ns"].min().is_monotonic_increasing
    assert (frame[frame["gauge"] == "resident_bytes"]["value"] > 10_000_000).all()


def test_a_store_that_is_not_there_and_a_run_that_is_not_are_named(store: Store, runs: Store) -> None:
    with pytest.raises(MissingSource, match="there is no store at"):
        profiler.load_runs(store.root / "nowhere")
    with pytest.raises(UnknownName):
        profiler.load_traces(runs.root, "1999")


def test_an_empty_store_is_an_empty_frame(tmp_path: Path) -> None:
    assert len(profiler.load_runs(tmp_path)) == len(profiler.load_samples(tmp_path)) == 0


def test_the_package_stays_light_until_a_frame_is_asked_for() -> None:
    heavy = "('pandas', 'numpy', 'msgspec')"
    tell = f"import sys, profiler; print('load_runs' in dir(profiler), *(n for n in {heavy} if n in sys.modules))"
    told = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["True"]
    with pytest.raises(AttributeError, match="no attribute 'load_dreams'"):
        profiler.load_dreams  # noqa: B018


def test_without_pandas_the_extra_is_named(runs: Store) -> None:
    tell = f"import sys; sys.modules['pandas'] = None; import profiler; profiler.load_runs({str(runs.root)!r})"
    ended = subprocess.run([sys.executable, "-c", tell], capture_output=True, text=True, check=False)
    assert "make install-analysis" in ended.stderr


def test_the_examples_of_the_documentation_run() -> None:
    text = (ROOT / "docs" / "analysis.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 5
    exec("\n".join(blocks).replace("path/to/store", str(GOLDEN)), {})
