"""The phone's storage as its programs see it: what is written below the root is taken from the model's free bytes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from tests.phones.android.ask_server import Answer
from tests.phones.android.rootfs import Rootfs

_DEVICE = "/dev/block/dm-54"
_UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K"))


class Partition(Protocol):
    """The model's data partition."""

    total_bytes: int
    free_bytes: int

    def give_back(self, size_bytes: int) -> None:
        """Free space again."""


class StorageMeter:
    """Keep the model's partition up to date with what files really take, however they were written or removed."""

    def __init__(self, files: Rootfs, partition: Partition) -> None:
        self._files = files
        self._partition = partition
        self._seen_bytes = 0
        self._lock = threading.Lock()

    def free_bytes(self) -> int:
        """Return what can still be written."""
        with self._lock:
            used = self._files.used_bytes()
            grown, self._seen_bytes = used - self._seen_bytes, used
            if grown > 0:
                self._partition.free_bytes = max(0, self._partition.free_bytes - grown)
            else:
                self._partition.give_back(-grown)
            return self._partition.free_bytes

    def df(self, words: Sequence[str]) -> Answer:
        """Answer `df [-k] [-h] [PATH …]` for the data partition, on which all that the shell may write lies."""
        human = any(word.startswith("-") and "h" in word for word in words[1:])
        paths = [word for word in words[1:] if not word.startswith("-")] or ["/data"]
        free, total = self.free_bytes(), self._partition.total_bytes
        heading = "Size Used Avail Use%" if human else "1K-blocks      Used Available Use%"
        lines = [f"{'Filesystem':<20} {heading} Mounted on"]
        complaints = []
        for path in paths:
            if not self._files.host_path(path).exists():
                complaints.append(f"df: {path}: No such file or directory\n")
            else:
                lines.append(_line(total, free, path, human=human))
        return Answer("".join(f"{line}\n" for line in lines).encode(), "".join(complaints).encode(), bool(complaints))

    def statfs(self, words: Sequence[str]) -> Answer:
        """Answer `stat -f [-c FORMAT] PATH` in blocks of 4096 bytes."""
        rest = [word for word in words[1:] if word != "-f"]
        form = rest[rest.index("-c") + 1] if "-c" in rest else "%n: %a of %b blocks of %S free"
        path = rest[-1] if rest else "/data"
        free = self.free_bytes() // 4096
        told = {"%n": path, "%a": str(free), "%f": str(free), "%b": str(self._partition.total_bytes // 4096)}
        for key, value in {**told, "%S": "4096", "%s": "4096"}.items():
            form = form.replace(key, value)
        return Answer(f"{form}\n".encode())


def _line(total: int, free: int, path: str, *, human: bool) -> str:
    used = total - free
    share = f"{-(-used * 100 // total)}%"
    mounted = "/storage/emulated" if path.startswith(("/sdcard", "/storage")) else "/data/user/0"
    if human:
        return f"{_DEVICE:<20} {_pretty(total):>4} {_pretty(used):>4} {_pretty(free):>5} {share:>4} {mounted}"
    numbers = f"{total // 1024:>9} {used // 1024:>9} {free // 1024:>9}"
    return f"{_DEVICE:<20} {numbers} {share:>4} {mounted}"


def _pretty(size: int) -> str:
    for unit, letter in _UNITS:
        if size >= unit:
            return f"{size / unit:.0f}{letter}"
    return str(size)
