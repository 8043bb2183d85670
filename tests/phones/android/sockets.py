"""Sockets between host and phone: `tcp:`, `localabstract:`, and the reversed ones that the phone listens on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

from tests.phones.android.streams import Stream, StreamClosed

_PIECE_BYTES = 256 * 1024


def join(stream: Stream, connection: socket.socket) -> None:
    """Carry bytes both ways until either side ends, then close both."""
    threading.Thread(target=_carry_in, args=(stream, connection), name="adbd-socket", daemon=True).start()
    try:
        while piece := connection.recv(_PIECE_BYTES):
            stream.write(piece)
    except (OSError, StreamClosed):
        pass  # a socket that breaks closes the stream, and the other way about
    finally:
        stream.close()
        _shut(connection)
        connection.close()


def _carry_in(stream: Stream, connection: socket.socket) -> None:
    try:
        while piece := stream.receive():
            connection.sendall(piece)
    except OSError:
        pass  # seen by the other direction too
    _shut(connection)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def connect_tcp(port: int) -> socket.socket | None:
    """Connect to a port of the phone's loopback; None where nothing listens."""
    try:
        connection = socket.create_connection(("127.0.0.1", port))
    except OSError:
        return None
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def connect_abstract(address: str) -> socket.socket | None:
    """Connect to an abstract unix socket; None where nothing listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect("\0" + address)
    except OSError:
        connection.close()
        return None
    return connection


class ReverseError(Exception):
    """A reversed socket cannot be had; adb prints the text."""


class Reversed:
    """The phone's listening ports whose connections go to the host."""

    def __init__(self) -> None:
        self._listeners: dict[str, tuple[socket.socket, str]] = {}

    def answer(self, request: str, open_on_host: Callable[[str], Stream]) -> bytes:
        """Do what `forward:…`, `killforward:…` or `list-forward` asks; return the answer in adb's framing."""
        try:
            return self._answer(request, open_on_host)
        except ReverseError as error:
            return b"FAIL" + _counted(str(error))

    def close(self) -> None:
        """Stop listening everywhere."""
        for listener, _ in self._listeners.values():
            _shut(listener)
            listener.close()
        self._listeners.clear()

    def _answer(self, request: str, open_on_host: Callable[[str], Stream]) -> bytes:
        verb, _, rest = request.partition(":")
        if verb == "list-forward":
            return _counted("".join(f"host {near} {far}\n" for near, (_, far) in self._listeners.items()))
        if verb == "killforward":
            self._stop(rest)
            return b"OKAY"
        if verb == "killforward-all":
            self.close()
            return b"OKAY"
        if verb == "forward":
            near, _, far = rest.removeprefix("norebind:").partition(";")
            return self._start(near, far, open_on_host, rebind=not rest.startswith("norebind:"))
        raise ReverseError(f"unknown request {request!r}")

    def _start(self, near: str, far: str, open_on_host: Callable[[str], Stream], *, rebind: bool) -> bytes:
        if not near.startswith("tcp:"):
            raise ReverseError(f"cannot listen on {near!r}: only tcp: here")
        if near in self._listeners:
            if not rebind:
                raise ReverseError(f"cannot rebind existing socket: {near}")
            self._stop(near)
        try:
            listener = socket.create_server(("127.0.0.1", int(near.removeprefix("tcp:"))))
        except OSError as error:
            raise ReverseError(f"cannot bind listener: {error.strerror}") from error
        port = listener.getsockname()[1]
        self._listeners[f"tcp:{port}"] = (listener, far)
        threading.Thread(target=_accept, args=(listener, far, open_on_host), name="adbd-reverse", daemon=True).start()
        return b"OKAY" + (_counted(str(port)) if near == "tcp:0" else b"")

    def _stop(self, near: str) -> None:
        if near not in self._listeners:
            raise ReverseError(f"listener '{near}' not found")
        listener, _ = self._listeners.pop(near)
        _shut(listener)
        listener.close()


def _accept(listener: socket.socket, far: str, open_on_host: Callable[[str], Stream]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        stream = open_on_host(far)
        threading.Thread(target=join, args=(stream, connection), name="adbd-reverse", daemon=True).start()


def _counted(text: str) -> bytes:
    return f"{len(text.encode()):04x}{text}".encode()
