"""The data partition: how large, how full."""

from __future__ import annotations

from tests.phones.personas import StorageFacts


class Storage:
    """Bytes of the data partition; what pushes and apps write is taken from it."""

    def __init__(self, facts: StorageFacts) -> None:
        self.total_bytes = facts.total_bytes
        self.free_bytes = facts.free_bytes

    @property
    def used_bytes(self) -> int:
        """Return what is written."""
        return self.total_bytes - self.free_bytes

    def take(self, size_bytes: int) -> bool:
        """Take space and tell whether there was enough; if not, nothing is taken (ENOSPC)."""
        if size_bytes > self.free_bytes:
            return False
        self.free_bytes -= size_bytes
        return True

    def give_back(self, size_bytes: int) -> None:
        """Free space again."""
        self.free_bytes = min(self.total_bytes, self.free_bytes + size_bytes)

    def fill(self, *, leaving_bytes: int = 0) -> None:
        """Fill the partition up, as somebody's videos do."""
        self.free_bytes = leaving_bytes
