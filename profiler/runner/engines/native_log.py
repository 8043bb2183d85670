"""What ExecuTorch writes to sys.stderr, taken as text."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator

# "[program.cpp:114] File size is too small."
_LINE = re.compile(r"^\[\w+\.cpp:\d+\] (.*)$")


@contextlib.contextmanager
def native_log() -> Iterator[list[str]]:
    """Collect the runtime's lines, since its exceptions hold no more than a number; let through what others write."""
    found: list[str] = []
    taken = io.StringIO()
    try:
        with contextlib.redirect_stderr(taken):
            yield found
    finally:
        for line in taken.getvalue().splitlines(keepends=True):
            match = _LINE.match(line.rstrip())
            found.append(match[1]) if match else sys.stderr.write(line)
