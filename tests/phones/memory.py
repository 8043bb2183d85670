"""The memory ledger of a phone: who holds what, what is swapped, and who must die when it runs out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.phones.personas import MemoryFacts


@dataclass
class Process:
    """One app process; sizes in bytes. `high_water_bytes` is VmHWM: the highest resident size of its life.

    `peak_bytes` is the highest sum of resident and swapped memory, which no file of the phone tells.
    """

    pid: int
    package: str
    uid: int
    started_ns: int
    file_bytes: int = 0
    anonymous_bytes: int = 0
    swapped_bytes: int = 0
    high_water_bytes: int = 0
    peak_bytes: int = 0
    foreground: bool = True

    @property
    def resident_bytes(self) -> int:
        """Return VmRSS."""
        return self.file_bytes + self.anonymous_bytes

    @property
    def badness(self) -> int:
        """Return oom_score_adj: who is in the foreground dies last."""
        return 0 if self.foreground else 700


class MemoryLedger:
    """All memory of a phone; `total_bytes` is conserved between its owners and what is free."""

    def __init__(self, facts: MemoryFacts) -> None:
        self._facts = facts
        self.processes: dict[int, Process] = {}
        self.others_bytes = facts.others_bytes

    @property
    def total_bytes(self) -> int:
        """Return MemTotal."""
        return self._facts.total_bytes

    @property
    def swap_total_bytes(self) -> int:
        """Return SwapTotal."""
        return self._facts.swap_total_bytes

    @property
    def swapped_bytes(self) -> int:
        """Return what all processes have in zram, uncompressed."""
        return sum(process.swapped_bytes for process in self.processes.values())

    def available_bytes(self) -> int:
        """Return what is neither used nor holds compressed pages; below zero there is a debt that somebody must pay."""
        held = sum(process.resident_bytes for process in self.processes.values())
        compressed = round(self.swapped_bytes / self._facts.compression)
        return self.total_bytes - self._facts.fixed_bytes - self.others_bytes - held - compressed

    def start(self, pid: int, package: str, uid: int, now_ns: int) -> Process:
        """Add a fresh process with what an app holds that has done nothing yet."""
        process = Process(pid, package, uid, now_ns)
        self.processes[pid] = process
        self.grow(process, self._facts.app_file_bytes, self._facts.app_anonymous_bytes)
        return process

    def end(self, pid: int) -> Process | None:
        """Take a process away with all that it held."""
        return self.processes.pop(pid, None)

    def grow(self, process: Process, file_bytes: int, anonymous_bytes: int) -> None:
        """Add to (or, below zero, take from) what a process holds; what it frees comes out of its swap last."""
        process.file_bytes = max(0, process.file_bytes + file_bytes)
        left = process.anonymous_bytes + anonymous_bytes
        process.anonymous_bytes = max(0, left)
        process.swapped_bytes = max(0, process.swapped_bytes + min(0, left))
        self._relieve()
        process.high_water_bytes = max(process.high_water_bytes, process.resident_bytes)
        process.peak_bytes = max(process.peak_bytes, process.resident_bytes + process.swapped_bytes)

    def victims(self) -> Iterator[Process]:
        """Yield who must die, the largest of the most dispensable first, while less is free than the watermark."""
        doomed = sorted(self.processes.values(), key=lambda one: (-one.badness, -one.resident_bytes))
        for process in doomed:
            if self.available_bytes() >= self._facts.watermark_bytes:
                return
            yield process

    def _relieve(self) -> None:
        """Close cached apps, then compress pages that nobody touches, as the kernel does before it kills."""
        lacking = self._facts.watermark_bytes * 2 - self.available_bytes()
        if lacking <= 0:
            return
        self.others_bytes = max(self._facts.others_floor_bytes, self.others_bytes - lacking)
        for process in self.processes.values():
            self._compress(process)

    def _compress(self, process: Process) -> None:
        """Move a share of a process's anonymous pages to zram, no more than is lacking and fits."""
        if not self.swap_total_bytes:
            return
        lacking = self._facts.watermark_bytes * 2 - self.available_bytes()
        cold = round((process.anonymous_bytes + process.swapped_bytes) * self._facts.swap_share)
        wanted = round(lacking / (1 - 1 / self._facts.compression))
        room = self.swap_total_bytes - self.swapped_bytes
        moved = max(0, min(wanted, cold - process.swapped_bytes, room, process.anonymous_bytes))
        process.anonymous_bytes -= moved
        process.swapped_bytes += moved
