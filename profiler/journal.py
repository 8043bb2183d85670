"""The journal: each event is one appended line before anyone is told; the file is the truth."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from profiler import codec
from profiler.clock import Clock
from profiler.errors import InvalidRecord
from profiler.records.event import AnyEvent, Event

JOURNAL_FILE = "events.jsonl"

E = TypeVar("E", bound=Event)


class Journal:
    """Appends numbered events to a file; safe to call from several threads."""

    def __init__(self, path: Path, job_id: str, clock: Clock) -> None:
        self.path = path
        self._job_id = job_id
        self._clock = clock
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._seq = 0
        self._size_bytes = 0
        self._closed = False
        self.grown = threading.Condition()

    def append(self, kind: type[E], **fields: Any) -> E:
        """Write one event in a single append and return it; after `close` it is only numbered."""
        with self.grown:
            event = kind(
                seq=self._seq,
                job_id=self._job_id,
                device_boot_ns=self._clock.boot_ns(),
                wall_ns=self._clock.wall_ns(),
                **fields,
            )
            if not self._closed:
                self._write(codec.encode(event) + b"\n")
                self._seq += 1
            self.grown.notify_all()
            return event

    def _write(self, line: bytes) -> None:
        written = os.write(self._descriptor, line)
        if written < len(line):
            # The disk is full. Nothing may follow a torn line; without it a shorter event may still find room.
            os.ftruncate(self._descriptor, self._size_bytes)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._size_bytes += written

    def sync(self) -> None:
        """Flush to the disk; never called inside a timed window."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Flush, and let no later event in: the one written last is the end."""
        with self.grown:
            if not self._closed:
                self.sync()
                self._closed = True
            self.grown.notify_all()

    @property
    def closed(self) -> bool:
        """Tell whether the last event has been written."""
        return self._closed


def read_journal(path: Path) -> Iterator[AnyEvent]:
    """Read events in order; a torn last line is the mark of a killed writer and ends the journal.

    Raises InvalidRecord where a line before the last is broken or out of order.
    """
    lines = path.read_bytes().split(b"\n")
    whole, _torn = lines[:-1], lines[-1]
    for number, line in enumerate(whole):
        event: AnyEvent = codec.decode(line, AnyEvent, where=f"{path}:{number + 1}")  # type: ignore[arg-type]
        if event.seq != number:
            raise InvalidRecord(f"{path}:{number + 1}: event {event.seq} where {number} was due")
        yield event
