"""The host's side of the connection to one runner."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from profiler import __version__, codec
from profiler.errors import DeviceError, InvalidRecord, ProtocolError, RunnerLost
from profiler.records.event import AnyEvent, Stop
from profiler.records.job import Job
from profiler.records.message import (
    MAX_LINE_BYTES,
    PROTOCOL_VERSION,
    Accepted,
    Bye,
    Cancel,
    HostHello,
    Inspect,
    Inspection,
    Receipt,
    Refused,
    Replay,
    Reply,
    RunnerHello,
    Start,
)

_POLL_S = 0.5
_REPLY_TIMEOUT_S = 30.0

T = TypeVar("T")


class Link:
    """One conversation; `alive` tells whether the runner's process is still there."""

    def __init__(
        self, connection: socket.socket, alive: Callable[[], bool], *, reply_timeout_s: float = _REPLY_TIMEOUT_S
    ) -> None:
        self._connection = connection
        self._alive = alive
        self._reply_timeout_s = reply_timeout_s
        self._buffer = b""

    def hello(self, token: str) -> RunnerHello:
        """Introduce the host. Raises ProtocolError or RunnerLost."""
        self._send(HostHello(protocol_version=PROTOCOL_VERSION, host_version=__version__, token=token))
        return self._expect(RunnerHello)

    def inspect(self, paths: tuple[str, ...]) -> tuple[Receipt, ...]:
        """Ask which files the runner sees."""
        self._send(Inspect(paths=paths))
        return self._expect(Inspection).receipts

    def start(self, job: Job) -> None:
        """Hand a job over; its events follow."""
        self._send(Start(job=job))
        self._expect(Accepted)

    def replay(self, job_id: str, from_seq: int) -> None:
        """Ask for a job's events again, from one on."""
        self._send(Replay(job_id=job_id, from_seq=from_seq))
        self._expect(Accepted)

    def events(self) -> Iterator[AnyEvent]:
        """Yield events until the job's stop. Raises RunnerLost where the runner ends without one."""
        while True:
            event: AnyEvent = self._decode(self._line(timeout_s=None), AnyEvent)
            yield event
            if isinstance(event, Stop):
                return

    def cancel(self) -> None:
        """Ask the job to stop before its next call."""
        self._send(Cancel())

    def close(self) -> None:
        """Say goodbye where anyone listens, and hang up."""
        try:
            self._send(Bye())
        except RunnerLost:
            pass
        self._connection.close()

    def _send(self, message: Any) -> None:
        data = codec.encode(message) + b"\n"
        if len(data) > MAX_LINE_BYTES:
            raise ProtocolError(f"a message of {len(data)} bytes is longer than a line may be ({MAX_LINE_BYTES})")
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise RunnerLost(f"the runner hung up ({error.strerror or error})") from error

    def _expect(self, kind: type[T]) -> T:
        reply: Reply = self._decode(self._line(timeout_s=self._reply_timeout_s), Reply)
        if isinstance(reply, Refused):
            raise ProtocolError(f"the runner refused ({reply.code}): {reply.reason}")
        if not isinstance(reply, kind):
            raise ProtocolError(f"the runner answered {type(reply).__name__} where {kind.__name__} was due")
        return reply

    def _decode(self, line: bytes, kind: Any) -> Any:
        try:
            return codec.decode(line, kind, where="the runner")
        except InvalidRecord as error:
            raise ProtocolError(str(error)) from error

    def _line(self, *, timeout_s: float | None) -> bytes:
        waited_s = 0.0
        while b"\n" not in self._buffer:
            chunk = self._receive()
            if chunk is None:
                waited_s += _POLL_S
                if timeout_s is not None and waited_s > timeout_s:
                    raise RunnerLost(f"the runner gave no answer for {timeout_s:.0f} s")
                continue
            self._buffer += chunk
            if len(self._buffer) > MAX_LINE_BYTES and b"\n" not in self._buffer:
                raise ProtocolError("the runner sent a line that does not end")
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _receive(self) -> bytes | None:
        """Return bytes, or None where nothing came for a moment and the runner still lives."""
        self._connection.settimeout(_POLL_S)
        try:
            chunk = self._connection.recv(65536)
        except TimeoutError:
            if not self._alive():
                raise RunnerLost("the runner's process is gone") from None
            return None
        except OSError as error:
            raise RunnerLost(f"the connection to the runner broke ({error.strerror or error})") from error
        if not chunk:
            raise RunnerLost("the runner closed the connection")
        return chunk


def connect(port: int, alive: Callable[[], bool]) -> Link:
    """Open a connection to a runner on this machine's loopback. Raises DeviceError."""
    try:
        return Link(socket.create_connection(("127.0.0.1", port), timeout=_REPLY_TIMEOUT_S), alive)
    except OSError as error:
        raise DeviceError(f"no runner answers on 127.0.0.1:{port} ({error.strerror or error})") from error
