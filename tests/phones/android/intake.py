"""A file on its way to the phone: DATA messages of the sync protocol into a file, as fast as they come."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Iterator

from tests.phones.android.streams import Stream, StreamClosed

REQUEST = struct.Struct("<4sI")
_NOTHING = bytes(64 * 1024)


class IntakeFailed(Exception):
    """The file cannot be taken; the text is what the phone answers."""


class Intake:
    """Write DATA messages into a file as they come, without joining or copying them; runs of zeros become holes."""

    def __init__(self, stream: Stream, taken: Callable[[int], object] = lambda size: None) -> None:
        self._stream = stream
        self._taken = taken
        self._file: int | None = None
        self._room_bytes = 0
        self._pieces: list[memoryview] = []
        self._size = 0
        self._seconds = 0
        self._messages = self._received()

    def run(self, file: int | None, room_bytes: int) -> int:
        """Take what is sent into `file` (None: nowhere) and return the seconds that DONE carries.

        Raises IntakeFailed, after which `swallow` is in place, and StreamClosed.
        """
        self._file, self._room_bytes = file, room_bytes
        for piece in self._messages:
            if piece is None:
                self._write_out()
            else:
                self._pieces.append(piece)
        self._write_out()
        if self._file is not None:
            os.ftruncate(self._file, self._size)  # a hole at the end has no length of its own
        return self._seconds

    def swallow(self) -> None:
        """Read on to DONE after a failure: a host that is still writing would not see why we hung up."""
        try:
            for _ in self._messages:
                pass
        except IntakeFailed:
            pass  # it has been told of one already

    def _received(self) -> Iterator[memoryview | None]:
        """Yield the data in pieces as they come, and None before each wait for more; what follows DONE is put back."""
        buffer = memoryview(b"")
        while True:
            if len(buffer) < REQUEST.size:
                yield None
                buffer = self._refilled(buffer)
            name, length = REQUEST.unpack(buffer[: REQUEST.size])
            buffer = buffer[REQUEST.size :]
            if name == b"DONE":
                self._seconds = length
                self._stream.put_back(buffer)  # hosts send the next request without waiting for the answer
                return
            if name != b"DATA":
                raise IntakeFailed("invalid data message")
            while length:
                if not buffer:
                    yield None
                    buffer = self._next()
                piece, buffer = buffer[:length], buffer[length:]
                length -= len(piece)
                yield piece

    def _refilled(self, buffer: memoryview) -> memoryview:
        if not buffer:
            buffer = self._next()
        if len(buffer) < REQUEST.size:
            buffer = memoryview(bytes(buffer) + self._stream.receive_exactly(REQUEST.size - len(buffer)))
        return buffer

    def _next(self) -> memoryview:
        piece = self._stream.receive()
        if not piece:
            raise StreamClosed
        return piece

    def _write_out(self) -> None:
        pieces, self._pieces = self._pieces, []
        size = sum(map(len, pieces))
        if self._file is None or not size:
            return
        if self._size + size > self._room_bytes:
            raise IntakeFailed(f"write failed: {os.strerror(errno.ENOSPC)}")
        self._size += size
        self._taken(size)
        if all(map(_is_nothing, pieces)):
            os.lseek(self._file, size, os.SEEK_CUR)
        else:
            self._write(pieces, size)

    def _write(self, pieces: list[memoryview], size: int) -> None:
        assert self._file is not None
        try:
            written = os.writev(self._file, pieces)
            if written < size:
                rest = memoryview(b"".join(pieces))[written:]
                while rest:
                    rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            raise IntakeFailed(f"write failed: {error.strerror}") from None


def _is_nothing(piece: memoryview) -> bool:
    # Bytes that differ are as a rule seen at either end; only what may be all zero is copied to be compared.
    return piece[0] == 0 and piece[-1] == 0 and bytes(piece) == _NOTHING[: len(piece)]
