"""How the sync protocol says what a file is: short and 32-bit in its first version, whole in its second."""

from __future__ import annotations

import os
import struct

STAT1 = struct.Struct("<4sIII")
STAT2 = struct.Struct("<4sIQQIIIIQqqq")
ENTRY1 = struct.Struct("<4sIIII")
ENTRY2 = struct.Struct("<4sIQQIIIIQqqqI")


def short(status: os.stat_result | None) -> tuple[int, int, int]:
    """Return mode, size and time; sizes beyond 4 GiB wrap, as on real phones, and zeros stand for nothing there."""
    if status is None:
        return 0, 0, 0
    return status.st_mode, status.st_size & 0xFFFFFFFF, int(status.st_mtime) & 0xFFFFFFFF


def long(status: os.stat_result | None, error: int) -> tuple[int, ...]:
    """Return the error number, and what `stat` says where there is none."""
    if status is None:
        return error, *(0,) * 10
    return (
        0,
        status.st_dev,
        status.st_ino,
        status.st_mode,
        status.st_nlink,
        status.st_uid,
        status.st_gid,
        status.st_size,
        int(status.st_atime),
        int(status.st_mtime),
        int(status.st_ctime),
    )
