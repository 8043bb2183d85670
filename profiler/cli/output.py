"""Where text goes: results to stdout, everything else to stderr; JSON is one object a line."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console

from profiler import codec

_PLAIN_WIDTH = 100  # without a terminal (a log, a pipe) a fixed width keeps tables whole


def results() -> Console:
    """Return the console for what was asked for."""
    return Console(width=None if sys.stdout.isatty() else _PLAIN_WIDTH, highlight=False)


def notes() -> Console:
    """Return the console for progress and remarks."""
    return Console(stderr=True, width=None if sys.stderr.isatty() else _PLAIN_WIDTH, highlight=False)


def print_json(record: Any) -> None:
    """Print one object on one line, whatever the locale."""
    sys.stdout.buffer.write(codec.encode(record) + b"\n")
    sys.stdout.flush()
