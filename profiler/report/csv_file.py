"""Tables as CSV (RFC 4180): one row a run, or one row an image."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from profiler.records.run import Run
from profiler.report.entry import Entry
from profiler.report.tables import Value, columns, page_sample_rows, run_rows, sample_rows
from profiler.report.terminal import plain

# A spreadsheet takes a cell that starts like this for a formula; an apostrophe makes it words.
_FORMULA = ("=", "+", "-", "@")


def runs_csv(entries: Sequence[Entry]) -> str:
    """Return one row a run."""
    return _csv(run_rows(entries))


def samples_csv(entries: Sequence[Entry]) -> str:
    """Return one row an image, in the order they were made."""
    return _csv(sample_rows(entry.run for entry in entries))


def page_samples_csv(run: Run) -> str:
    """Return one row an image of one run, with its id and no more of what all its images share."""
    return _csv(page_sample_rows(run))


def _csv(rows: Iterable[dict[str, Value]]) -> str:
    kept = list(rows)
    head = columns(kept)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow([_cell(name) for name in head])
    for row in kept:
        writer.writerow([_cell(row.get(name)) for name in head])
    return stream.getvalue()


def _cell(value: Value) -> str:
    """Write a value so that it reads back: empty is missing, true and false are words, numbers keep all digits.

    In text a sign that steers a terminal is replaced: files like these are shown by `cat` and `less` too.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        shown = plain(value).plain
        return f"'{shown}" if shown.startswith(_FORMULA) else shown
    return repr(value)
