"""A file on its way to the phone: DATA messages of the sync protocol into a file, as fast as they come."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable

from tests.phones.android.streams import Stream, StreamClosed

REQUEST = struct.Struct("<4sI")
_NOTHING = bytes(64 * 1024)


class IntakeFailed(Exception):
    """The file cannot be taken; the text is what the phone answers."""


class Intake:
    """Write DATA messages into a file as they come, without joining or copying them; runs of zeros become holes."""

    def __init__(
        self, stream: Stream, file: int | None, room_bytes: int, taken: Callable[[int], object] = lambda size: None
    ) -> None:
        self._stream = stream
        self._taken = taken
        self._file = file
        self._room_bytes = room_bytes
        self._pieces: list[memoryview] = []
        self._size = 0

    def run(self) -> int:
        """Return the seconds that DONE carries. Raises IntakeFailed and StreamClosed."""
        buffer = memoryview(b"")
        while True:
            if len(buffer) < REQUEST.size:
                self._write_out()
                buffer = self._refill(buffer)
            name, length = REQUEST.unpack(buffer[: REQUEST.size])
            buffer = buffer[REQUEST.size :]
            if name == b"DONE":
                self._stream.put_back(buffer)  # hosts send the next request without waiting for the answer
                self._write_out()
                self._end()
                return int(length)
            if name != b"DATA":
                raise IntakeFailed("invalid data message")
            buffer = self._data(buffer, length)

    def _refill(self, buffer: memoryview) -> memoryview:
        if not buffer:
            buffer = self._next()
        if len(buffer) < REQUEST.size:
            buffer = memoryview(bytes(buffer) + self._stream.receive_exactly(REQUEST.size - len(buffer)))
        return buffer

    def _data(self, buffer: memoryview, length: int) -> memoryview:
        while True:
            piece = buffer[:length]
            if piece:
                self._pieces.append(piece)
                length -= len(piece)
            if not length:
                return buffer[len(piece) :]
            self._write_out()
            buffer = self._next()

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

    def _end(self) -> None:
        if self._file is not None:
            os.ftruncate(self._file, self._size)  # a hole at the end has no length of its own


def _is_nothing(piece: memoryview) -> bool:
    # Bytes that differ are as a rule seen at either end; only what may be all zero is copied to be compared.
    return piece[0] == 0 and piece[-1] == 0 and bytes(piece) == _NOTHING[: len(piece)]
