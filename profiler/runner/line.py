"""One connection as the runner sees it: a message a line."""

from __future__ import annotations

import contextlib
import socket
import threading

from profiler import codec
from profiler.errors import InvalidRecord
from profiler.records.message import MAX_LINE_BYTES, Reply, Request

_HELLO_TIMEOUT_S = 10.0


class Line:
    """Newline-delimited JSON over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_HELLO_TIMEOUT_S)
        self._connection = connection
        self._stream = connection.makefile("rb")
        self._lock = threading.Lock()

    def wait_without_limit(self) -> None:
        """Let the other end be silent from now on."""
        self._connection.settimeout(None)

    def read(self) -> Request | None:
        """Return the next request, or None at the end. Raises InvalidRecord or OSError."""
        data = self._stream.readline(MAX_LINE_BYTES + 1)
        if len(data) > MAX_LINE_BYTES:
            raise InvalidRecord(f"the host: a line of more than {MAX_LINE_BYTES} bytes")
        if not data.endswith(b"\n"):
            return None
        return codec.decode_checked(data, Request, where="the host")  # type: ignore[arg-type]

    def send(self, reply: Reply) -> None:
        """Send one reply."""
        self.send_bytes(codec.encode(reply) + b"\n")

    def send_bytes(self, data: bytes) -> None:
        """Send whole lines; never interleaved with another thread's."""
        with self._lock:
            self._connection.sendall(data)

    def hang_up(self) -> None:
        """End the connection for whoever reads or writes it now."""
        with contextlib.suppress(OSError):  # the other end is gone already
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Give the connection up."""
        self.hang_up()
        self._stream.close()
        self._connection.close()
