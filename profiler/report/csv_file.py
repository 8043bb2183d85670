"""Tables as CSV (RFC 4180): one row a run, or one row an image."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from profiler.report.entry import Entry
from profiler.report.tables import Value, columns, run_rows, sample_rows

# A spreadsheet takes a cell that starts like this for a formula; an apostrophe makes it words.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def runs_csv(entries: Sequence[Entry]) -> str:
    """Return one row a run."""
    return _csv(run_rows(entries))


def samples_csv(entries: Sequence[Entry]) -> str:
    """Return one row an image, in the order they were made."""
    return _csv(sample_rows(entry.run for entry in entries))


def _csv(rows: Iterable[dict[str, Value]]) -> str:
    kept = list(rows)
    head = columns(kept)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(head)
    for row in kept:
        writer.writerow([_cell(row.get(name)) for name in head])
    return stream.getvalue()


def _cell(value: Value) -> str:
    """Write a value so that it reads back: empty is missing, true and false are words, numbers keep all digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return repr(value)
