"""Runs as pandas frames, the public way to analyse a store: `profiler.load_runs`, `load_samples`, `load_traces`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from profiler import catalog, codec
from profiler.errors import MissingExtra, MissingSource
from profiler.quantities import NS_PER_US
from profiler.records.policy import Policy
from profiler.records.trace import ProcessTrace
from profiler.report.entry import Entry
from profiler.report.summary import summarise
from profiler.report.tables import Kind, Row, kinds, run_rows, sample_rows
from profiler.store import Store

if TYPE_CHECKING:
    import pandas as pd

# Nullable ones, so that what is missing stays missing and numbers stay whole.
_DTYPES: dict[Kind, str] = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}


def load_runs(store: str | Path, *, policy: str = "moi-bench") -> pd.DataFrame:
    """Return one row a run, oldest first; `policy` is a name, or a TOML file, and decides the tier columns.

    Names carry units; what was not measured is missing, never 0. Intervals and trends take some milliseconds a run.
    Raises MissingSource, InvalidRecord or MissingExtra.
    """
    judged_by = codec.read_toml(Path(policy), Policy) if policy.endswith(".toml") else catalog.policy(policy)
    return _frame(run_rows(_entries(store, judged_by)))


def load_samples(store: str | Path) -> pd.DataFrame:
    """Return one row an image of any kind, runs oldest first, images in the order made; `phase` tells the kinds apart.

    Raises MissingSource, InvalidRecord or MissingExtra.
    """
    opened = _opened(store)
    return _frame(sample_rows(opened.load(run_id) for run_id in opened.run_ids()))


def load_traces(store: str | Path, run: str = "last") -> pd.DataFrame:
    """Return one row a reading of one run's gauges, in long form: process, gauge, value, and seconds since its start.

    Raises MissingSource, UnknownName, InvalidRecord or MissingExtra.
    """
    opened = _opened(store)
    traces = opened.load_traces(opened.load(opened.find(run)))
    return _frame(row for trace in traces for row in _readings(trace))


def _opened(store: str | Path) -> Store:
    path = Path(store).expanduser().absolute()
    if not path.is_dir():
        raise MissingSource(f"there is no store at {path}", hint="Make a run: profile --store DIR")
    return Store(path)


def _entries(store: str | Path, policy: Policy) -> Iterator[Entry]:
    opened = _opened(store)
    for run_id in opened.run_ids():
        run, folder = opened.load(run_id), opened.folder(run_id)
        yield Entry(run, summarise(run, folder, policy), (), folder)


def _readings(trace: ProcessTrace) -> Iterator[Row]:
    for memory in trace.memory:
        yield _reading(trace, memory.device_boot_ns, "resident_bytes", memory.resident_bytes)
    for sample in trace.environment:
        for gauge in sample.__struct_fields__:
            value = getattr(sample, gauge)
            if gauge != "device_boot_ns" and value is not None:
                yield _reading(trace, sample.device_boot_ns, gauge, value)


def _reading(trace: ProcessTrace, boot_ns: int, gauge: str, value: float) -> Row:
    return {"process": trace.process, "device_boot_ns": boot_ns, "gauge": gauge, "value": float(value)}


def _frame(rows: Iterable[Row]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise MissingExtra("a data frame", "analysis") from error
    kept = list(rows)
    types = {name: _DTYPES[kind] for name, kind in kinds(kept).items()}
    frame = pd.DataFrame(kept, columns=list(types), dtype=object).astype(types)
    if "started_wall_ns" in frame:
        # pandas takes ns as they are; a column of times is what everyone makes of it first.
        frame.insert(1, "started", pd.to_datetime(frame.pop("started_wall_ns") // NS_PER_US, unit="us", utc=True))
    return frame
