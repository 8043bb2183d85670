"""Locks that go with the process which holds them, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO


def hold(path: Path) -> IO[str] | None:
    """Lock a file, making it where need be; return what to close, or None where another process holds it.

    Raises OSError where the file cannot be opened.
    """
    lock = path.open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock.fileno()), path.stat()):
            return lock
    except OSError:
        pass  # held, or removed by its holder between opening and locking
    lock.close()
    return None
