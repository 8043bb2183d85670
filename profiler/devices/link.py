"""The host's side of the conversation with one runner, which outlives its connection."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from profiler import __version__, codec
from profiler.clock import Clock, RealClock
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

# Every so long without news `events` says so.
MOMENT_S = 0.5
_REPLY_TIMEOUT_S = 30.0
_RETRIES_A_MOMENT = 5

T = TypeVar("T")
OpenConnection = Callable[[], socket.socket]


class _Cut(RunnerLost):
    """The connection broke; the runner may go on without it."""


class Link:
    """One conversation; `alive` tells whether the runner's process is still there.

    It is asked after every quiet moment, and once the connection broke `alive_when_cut` instead: on a phone that costs
    a round trip, which must not disturb a measurement. Raises OSError where the first connection cannot be opened.
    """

    def __init__(
        self,
        open_connection: OpenConnection,
        alive: Callable[[], bool],
        *,
        alive_when_cut: Callable[[], bool] | None = None,
        clock: Clock | None = None,
        reply_timeout_s: float = _REPLY_TIMEOUT_S,
    ) -> None:
        self._open_connection = open_connection
        self._alive = alive
        self._alive_when_cut = alive_when_cut or alive
        self.cut = False
        self.over = False
        self._clock = clock or RealClock()
        self._reply_timeout_s = reply_timeout_s
        self._connection = open_connection()
        self._buffer = b""
        self._token = ""
        self._job_id: str | None = None
        self._next_seq = 0
        self._retries = 0
        self._away_s = math.inf

    def hello(self, token: str) -> RunnerHello:
        """Introduce the host. Raises ProtocolError or RunnerLost."""
        self._token = token
        self._send(HostHello(protocol_version=PROTOCOL_VERSION, host_version=__version__, token=token))
        hello = self._expect(RunnerHello)
        if hello.protocol_version != PROTOCOL_VERSION:
            raise ProtocolError(
                f"the runner speaks {hello.protocol_version}, the host {PROTOCOL_VERSION}: update the older"
            )
        return hello

    def inspect(self, paths: tuple[str, ...]) -> tuple[Receipt, ...]:
        """Ask which files the runner sees."""
        self._send(Inspect(paths=paths))
        return self._expect(Inspection).receipts

    def start(self, job: Job) -> None:
        """Hand a job over; its events follow."""
        rule = job.on_disconnect
        self._job_id, self._next_seq = job.job_id, 0
        # By then the runner has left for sure; one that finishes without a host can be come back to at any time.
        self._away_s = 2 * (rule.seconds or 0.0) + 1 if rule.kind == "stop_after_s" else math.inf
        try:
            self._send(Start(job=job))
            self._expect(Accepted)
        except _Cut as cut:  # whether the job was taken, a replay will tell
            for moment, _ in enumerate(self._resumed(cut)):
                if moment * MOMENT_S > self._reply_timeout_s:
                    raise

    def replay(self, job_id: str, from_seq: int) -> None:
        """Ask for a job's events again, from one on."""
        self._job_id, self._next_seq = job_id, from_seq
        self._send(Replay(job_id=job_id, from_seq=from_seq))
        self._expect(Accepted)

    def events(self) -> Iterator[AnyEvent | None]:
        """Yield each event once until the job's stop, and None after every MOMENT_S without one.

        A connection that breaks is opened again for as long as the runner waits, and what was missed is asked for.
        Raises RunnerLost where the runner ends without a stop.
        """
        event: AnyEvent | None = None
        while not isinstance(event, Stop):
            try:
                line = self._line()
            except _Cut as cut:
                yield from self._resumed(cut)
                continue
            event = None if line is None else self._numbered(line)
            self.over = isinstance(event, Stop)
            yield event

    def _numbered(self, line: bytes) -> AnyEvent:
        event: AnyEvent = self._decode(line, AnyEvent)
        if event.seq != self._next_seq:
            raise ProtocolError(f"the runner sent event {event.seq} where {self._next_seq} was due")
        self._next_seq += 1
        self._retries = 0
        return event

    def _resumed(self, cut: _Cut) -> Iterator[None]:
        """Open a new connection and take the conversation up where it broke; yield each moment that this takes."""
        pause_s = MOMENT_S / _RETRIES_A_MOMENT
        self.cut = True
        while self._job_id is not None and self._alive_when_cut() and self._retries * pause_s < self._away_s:
            if self._retries:
                self._clock.sleep(pause_s)
            self._retries += 1
            if self._retries % _RETRIES_A_MOMENT == 0:
                yield None
            try:
                self._reconnect(self._job_id)
            except (OSError, _Cut):
                continue
            self.cut = False
            return
        raise cut

    def _reconnect(self, job_id: str) -> None:
        self._connection.close()
        self._buffer = b""
        self._connection = self._open_connection()
        self.hello(self._token)
        self.replay(job_id, self._next_seq)

    def cancel(self) -> None:
        """Ask the job to stop before its next call."""
        self._send(Cancel())

    def close(self) -> None:
        """Say goodbye where anyone listens, and hang up."""
        try:
            self._send(Bye())
        except RunnerLost:
            pass
        self.hang_up()

    def hang_up(self) -> None:
        """End the connection without a word: a runner that may finish by itself does."""
        self._connection.close()

    def _send(self, message: Any) -> None:
        data = codec.encode(message) + b"\n"
        if len(data) > MAX_LINE_BYTES:
            raise ProtocolError(f"a message of {len(data)} bytes is longer than a line may be ({MAX_LINE_BYTES})")
        try:
            self._connection.sendall(data)
        except OSError as error:
            raise _Cut(f"the runner hung up ({error.strerror or error})") from error

    def _expect(self, kind: type[T]) -> T:
        reply: Reply = self._decode(self._reply_line(), Reply)
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

    def _reply_line(self) -> bytes:
        waited_s = 0.0
        while (line := self._line()) is None:
            waited_s += MOMENT_S
            if waited_s > self._reply_timeout_s:
                raise RunnerLost(f"the runner gave no answer for {self._reply_timeout_s:.0f} s")
        return line

    def _line(self) -> bytes | None:
        """Return the next line, or None where nothing came for a moment and the runner still lives."""
        while b"\n" not in self._buffer:
            chunk = self._receive()
            if chunk is None:
                return None
            self._buffer += chunk
            if len(self._buffer) > MAX_LINE_BYTES and b"\n" not in self._buffer:
                raise ProtocolError("the runner sent a line that does not end")
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _receive(self) -> bytes | None:
        self._connection.settimeout(MOMENT_S)
        try:
            chunk = self._connection.recv(65536)
        except TimeoutError:
            if not self._alive():
                raise RunnerLost("the runner's process is gone") from None
            return None
        except OSError as error:
            raise _Cut(f"the connection to the runner broke ({error.strerror or error})") from error
        if not chunk:
            raise _Cut("the runner closed the connection")
        return chunk


def connect(port: int, alive: Callable[[], bool], clock: Clock | None = None) -> Link:
    """Open a conversation with a runner on this machine's loopback. Raises DeviceError."""

    def open_connection() -> socket.socket:
        return socket.create_connection(("127.0.0.1", port), timeout=_REPLY_TIMEOUT_S)

    try:
        return Link(open_connection, alive, clock=clock)
    except (OSError, OverflowError) as error:  # the latter: no such port
        reason = getattr(error, "strerror", None) or error
        raise DeviceError(f"no runner answers on 127.0.0.1:{port} ({reason})") from error
