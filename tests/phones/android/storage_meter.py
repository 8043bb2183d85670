"""The phone's storage as its programs see it: what is written below the root is taken from the model's free bytes."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tests.phones.android.commands_answer import Answer
from tests.phones.android.rootfs import Rootfs
from tests.phones.storage import Storage

_BLOCK_BYTES = 4096


class StorageMeter:
    """Keep the model's partition up to date with what files really take, however they were written or removed."""

    def __init__(self, files: Rootfs, partition: Storage) -> None:
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

    def statfs(self, words: Sequence[str]) -> Answer:
        """Answer `stat -f [-c FORMAT] PATH` in blocks of 4096 bytes."""
        rest = [word for word in words[1:] if word != "-f"]
        form = rest[rest.index("-c") + 1] if "-c" in rest else "%n: %a of %b blocks of %S free"
        path = rest[-1] if rest else "/data"
        free = self.free_bytes() // _BLOCK_BYTES
        told = {"%n": path, "%a": str(free), "%f": str(free), "%b": str(self._partition.total_bytes // _BLOCK_BYTES)}
        for key, value in {**told, "%S": "4096", "%s": "4096"}.items():
            form = form.replace(key, value)
        return Answer(f"{form}\n".encode())
