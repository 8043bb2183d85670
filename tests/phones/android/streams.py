"""One opened service of the transport: bytes both ways, with the flow control of ADB."""

from __future__ import annotations

import io
import struct
import threading
from collections import deque
from collections.abc import Callable

from tests.phones.android.packets import CLSE, OKAY, WRTE, Packet, Payload

ACKNOWLEDGED_AHEAD_BYTES = 4 << 20
"""What may wait unread before the host is held back: enough that the disk and the wire work at the same time."""

WINDOW_BYTES = 32 << 20
"""What either side may send unacknowledged when both speak `delayed_ack`."""


class StreamClosed(Exception):
    """The host closed the stream, or the link is gone."""


class Stream:
    """Read what the host writes and write what it reads; `send` puts a packet on the link."""

    def __init__(
        self, local: int, remote: int, send: Callable[[Packet], None], max_payload_bytes: int, credit_bytes: int = 0
    ) -> None:
        self.local = local
        self.remote = remote
        self._send = send
        self._max_payload_bytes = max_payload_bytes
        self._delayed = credit_bytes > 0
        self._credit_bytes = credit_bytes  # how much may be sent now; without delayed_ack: one packet or none
        self._changed = threading.Condition()
        self._incoming: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._owed: deque[int] = deque()
        self._ready = True
        self._closed = False
        self._told = False

    @property
    def closed(self) -> bool:
        """Whether the host has closed the stream, or the link is gone."""
        return self._closed

    def arrived(self, payload: Payload) -> None:
        """Take a WRTE in; acknowledge it now or once enough of what waits was read."""
        with self._changed:
            self._incoming.append(memoryview(payload))
            self._waiting_bytes += len(payload)
            held_back = self._waiting_bytes > ACKNOWLEDGED_AHEAD_BYTES
            if held_back:
                self._owed.append(len(payload))
            self._changed.notify_all()
        if not held_back:
            self._acknowledge(len(payload))

    def acknowledged(self, payload: Payload) -> None:
        """Take an OKAY in."""
        with self._changed:
            if self._delayed and len(payload) == 4:
                self._credit_bytes += struct.unpack("<i", payload)[0]
            self._ready = True
            self._changed.notify_all()

    def expect_answer(self) -> None:
        """Hold back what is written until the host has taken the stream."""
        self._ready = False

    def hang_up(self) -> None:
        """Take in that the host closed the stream, or that the link is gone; what waits can still be read."""
        with self._changed:
            self._closed = self._told = True
            self._changed.notify_all()

    def receive(self, limit_bytes: int = 1 << 62) -> memoryview:
        """Return what arrived, as it arrived and not copied; empty once the host has closed the stream."""
        with self._changed:
            while not self._incoming and not self._closed:
                self._changed.wait()
            if not self._incoming:
                return memoryview(b"")
            piece = self._incoming.popleft()
            if len(piece) > limit_bytes:
                self._incoming.appendleft(piece[limit_bytes:])
                piece = piece[:limit_bytes]
            self._waiting_bytes -= len(piece)
            owed = self._due()
        for size in owed:
            self._acknowledge(size)
        return piece

    def put_back(self, piece: memoryview) -> None:
        """Let what was received be received again: the beginning of what comes next."""
        if piece:
            with self._changed:
                self._incoming.appendleft(piece)
                self._waiting_bytes += len(piece)

    def receive_exactly(self, size: int) -> bytes:
        """Return `size` bytes; raises StreamClosed when the stream ends before."""
        pieces = []
        while size:
            piece = self.receive(size)
            if not piece:
                raise StreamClosed
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def as_file(self) -> io.BufferedReader:
        """Return what the host writes as a file to read from."""
        return io.BufferedReader(_Incoming(self))

    def write(self, data: Payload) -> None:
        """Send all of `data`, waiting for the host as the protocol asks; raises StreamClosed."""
        rest = memoryview(data)
        while rest:
            size = self._await_credit(len(rest))
            self._send(Packet(WRTE, self.local, self.remote, rest[:size]))
            rest = rest[size:]

    def close(self) -> None:
        """Close the stream from the phone's side."""
        with self._changed:
            told, self._told, self._closed = self._told, True, True
            self._changed.notify_all()
        if not told:
            self._send(Packet(CLSE, self.local, self.remote))

    def await_closed(self) -> None:
        """Wait, reading nothing, until the host hangs up."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed)

    def _await_credit(self, wanted: int) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or (self._credit_bytes > 0 if self._delayed else self._ready))
            if self._closed:
                raise StreamClosed
            size = min(wanted, self._max_payload_bytes)
            if self._delayed:
                self._credit_bytes -= size
            else:
                self._ready = False
            return size

    def _due(self) -> list[int]:
        if self._waiting_bytes > ACKNOWLEDGED_AHEAD_BYTES // 2:
            return []
        owed = list(self._owed)
        self._owed.clear()
        return owed

    def _acknowledge(self, size: int) -> None:
        payload = struct.pack("<i", size) if self._delayed else b""
        if not self._closed:
            self._send(Packet(OKAY, self.local, self.remote, payload))


class _Incoming(io.RawIOBase):
    """The host's bytes, as files are read."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        piece = self._stream.receive(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)
