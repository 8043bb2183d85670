"""One run with all that a report needs of it."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from profiler.errors import InvalidRecord, ProfilerError
from profiler.records.run import Run
from profiler.records.summary import Summary
from profiler.records.trace import ProcessTrace
from profiler.report.words import one_line


class Entry(NamedTuple):
    """A run, what was made of it, what was sampled beside it, and the folder where its files are."""

    run: Run
    summary: Summary
    traces: Sequence[ProcessTrace]
    folder: Path


@contextlib.contextmanager
def blaming(file: Path) -> Iterator[None]:
    """Say of a record that can be read but not be summed up that its file is at fault. Raises InvalidRecord.

    A schema lets through numbers no run can have, as 10^400 bytes, a protocol without its parameter, and clocks that
    ran back; what statistics, arithmetic and formats say of them is neither ours nor a bug, and one such record must
    not cost a whole list.
    """
    try:
        yield
    except (ProfilerError, ValueError, ArithmeticError, TypeError) as error:
        raise InvalidRecord(f"{file}: cannot be summed up: {Exception.__str__(error)}") from error


def labels(entries: Sequence[Entry]) -> list[str]:
    """Name runs as short as they can be told apart: model and task, and where needed the end of the id."""
    names = [f"{one_line(entry.run.model, 40)}, {entry.run.task}" for entry in entries]
    times = Counter(names)
    ends = [entry.run.run_id.rsplit("-", 1)[-1] for entry in entries]
    return [f"{name}, {end}" if times[name] > 1 else name for name, end in zip(names, ends, strict=True)]
