"""What a native library writes to the process's stderr, taken as text."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator

# ExecuTorch's form: "[program.cpp:114] File size is too small."
_LINE = re.compile(r"^\[\w+\.cpp:\d+\] (.*)$")


class NativeLog:
    """The lines a library wrote; its exceptions hold no more than a number."""

    def __init__(self) -> None:
        self.lines: list[str] = []


@contextlib.contextmanager
def native_log() -> Iterator[NativeLog]:
    """Take the library's lines off stderr meanwhile; what anyone else writes appears there afterwards."""
    log = NativeLog()
    with tempfile.TemporaryFile() as taken:
        try:
            kept = os.dup(2)
        except OSError:  # started without stderr
            yield log
            return
        os.dup2(taken.fileno(), 2)
        try:
            yield log
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            taken.seek(0)
            _sort(taken.read(), log)


def _sort(data: bytes, log: NativeLog) -> None:
    for line in data.splitlines(keepends=True):
        found = _LINE.match(line.decode(errors="replace").rstrip())
        if found:
            log.lines.append(found[1])
        else:
            os.write(2, line)
