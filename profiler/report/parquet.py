"""Tables as Parquet, with types kept and missing values missing. Needs the analysis extra."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from profiler.errors import MissingExtra
from profiler.report.entry import Entry
from profiler.report.tables import Row, check_typed, kinds, run_rows, sample_rows


def runs_parquet(entries: Sequence[Entry]) -> bytes:
    """Return one row a run. Raises MissingExtra, or InvalidRecord for a number beyond 64 bits."""
    return _parquet(run_rows(entries))


def samples_parquet(entries: Sequence[Entry]) -> bytes:
    """Return one row an image, in the order they were made. Raises MissingExtra, or InvalidRecord as runs do."""
    return _parquet(sample_rows(entry.run for entry in entries))


def _parquet(rows: Iterable[Row]) -> bytes:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("Parquet", "analysis") from error
    kept = list(check_typed(rows))
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in kinds(kept).items()])
    table = pa.table({name: [row.get(name) for row in kept] for name in schema.names}, schema=schema)
    stream = io.BytesIO()
    parquet.write_table(table, stream, compression="zstd")
    return stream.getvalue()
