from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import profiler
from profiler.errors import MissingSource, UnknownName
from profiler.records.job import Measurement
from profiler.records.run import Run
from profiler.store import RUN_FILE, Store
from tests.cli.test_showing import add_run, rewrite
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


@pytest.mark.parametrize("load", [profiler.load_runs, profiler.load_samples, profiler.load_traces])
def test_an_empty_store_is_an_empty_frame_with_the_columns_and_types_of_any(
    tmp_path: Path, load: Callable[[Path], Any]
) -> None:
    empty, full = load(tmp_path), load(GOLDEN)
    assert len(empty) == 0
    assert list(empty.columns) == [name for name in full.columns if "." not in name]
    assert (empty.dtypes == full.dtypes[empty.dtypes.index]).all()


@pytest.mark.parametrize(
    "broken",
    [
        lambda run: replace(run, measurement=Measurement(kind="spaced")),
        lambda run: replace(run, settings=replace(run.settings, seed=10**30)),
        lambda run: replace(run, started_wall_ns=-(10**21)),
        lambda run: replace(run, bundle=replace(run.bundle, size_bytes=10**400)),
        lambda run: replace(run, run_id="other"),
        lambda run: replace(run, iterations=(*make_samples()[3:], *make_samples(process=1)[:3])),
    ],
)
def test_a_broken_record_is_left_out_with_a_warning_that_names_its_file(
    store: Store, broken: Callable[[Run], Run]
) -> None:
    good, bad = (add_run(store, day) for day in range(2))
    rewrite(store, broken(store.load(bad.run_id)), bad.run_id)
    with pytest.warns(UserWarning, match=re.escape(f"left out: {store.folder(bad.run_id) / RUN_FILE}")):
        assert profiler.load_runs(store.root)["run_id"].tolist() == [good.run_id]


def test_a_file_that_is_no_record_costs_its_own_images_alone(store: Store) -> None:
    good, bad = (add_run(store, day) for day in range(2))
    (store.folder(bad.run_id) / RUN_FILE).write_bytes(b"{")
    with pytest.warns(UserWarning, match="left out"):
        assert set(profiler.load_samples(store.root)["run_id"]) == {good.run_id}


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
