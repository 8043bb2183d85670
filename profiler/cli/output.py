"""Where text goes: results to stdout, everything else to stderr; JSON is one object a line."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console, RenderableType

from profiler import codec
from profiler.records.summary import Summary
from profiler.report.terminal import plain, render, where

_PLAIN_WIDTH = 100  # without a terminal (a log, a pipe) a fixed width keeps tables whole


def results(*, plain_width: int = _PLAIN_WIDTH) -> Console:
    """Return the console for what was asked for."""
    return Console(width=None if sys.stdout.isatty() else plain_width, highlight=False)


def print_result(result: RenderableType, *, plain_width: int = _PLAIN_WIDTH) -> None:
    """Print what was asked for; outside a terminal without the spaces that fill a table's lines."""
    console = results(plain_width=plain_width)
    if console.is_terminal:
        console.print(result)
        return
    with console.capture() as captured:
        console.print(result)
    print("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")))


def print_summary(summary: Summary) -> None:
    """Print a run for people."""
    print_result(render(summary))
    print(plain(where(summary)).plain)  # a path is a record's word too


class _Notes(Console):
    """A console whose reader may go away; what is measured does not depend on being watched."""

    def on_broken_pipe(self) -> None:
        """Say nothing more; rich would end the program."""
        self.quiet = True


def notes() -> Console:
    """Return the console for progress and remarks."""
    return _Notes(stderr=True, width=None if sys.stderr.isatty() else _PLAIN_WIDTH, highlight=False)


def print_json(record: Any) -> None:
    """Print one object on one line, whatever the locale."""
    sys.stdout.buffer.write(codec.encode(record) + b"\n")
    sys.stdout.flush()
