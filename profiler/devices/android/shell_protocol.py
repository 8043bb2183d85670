"""How a shell on a phone is spoken to: packets of v2, a shell that is kept, and one without packets.

Android's shell protocol v2 is AOSP `packages/modules/adb/shell_protocol.h`: packets of a kind, a length and data.
"""

from __future__ import annotations

import secrets
import select
import shlex
import socket
from typing import BinaryIO, NamedTuple

from profiler.clock import Deadline
from profiler.devices.android.adb import Transport
from profiler.devices.android.listing import ZOMBIE
from profiler.errors import DeviceError, ProtocolError

_READ_BYTES = 1 << 16
_SEND_BYTES = 1 << 20
_STDIN, _STDOUT, _STDERR, _EXIT, CLOSE_STDIN = range(5)
_HEADER_BYTES = 5
# The adb server holds its second small packet back until the first is acknowledged, which Linux puts off for 40 ms.
_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class Output(NamedTuple):
    """What a command printed and ended with."""

    stdout: bytes
    stderr: bytes
    code: int

    @property
    def text(self) -> str:
        """Return what it printed to standard output, as text."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        """Return the last line of what it complained about, or else of what it printed."""
        lines = (self.stderr or self.stdout).decode("utf-8", "replace").strip().splitlines()
        return lines[-1].strip() if lines else f"exit code {self.code}, and not a word"


class Run(NamedTuple):
    """One command under way."""

    serial: str
    command: str
    deadline_s: float
    limit_bytes: int
    deadline: Deadline

    def late(self) -> DeviceError:
        return DeviceError(
            f"{self.serial}: {short(self.command)} gave no answer in {self.deadline_s:g} s; it may still be running",
            hint=ZOMBIE.next_step,
        )

    def cut(self, reason: str) -> DeviceError:
        return DeviceError(
            f"{self.serial}: the connection broke while {short(self.command)} ran ({reason})",
            hint="Check the cable; see: profile devices",
        )

    def too_much(self) -> DeviceError:
        return DeviceError(f"{self.serial}: {short(self.command)} printed more than {self.limit_bytes} bytes")


def short(command: str) -> str:
    line = " ".join(command.split())
    return repr(line if len(line) <= 100 else f"{line[:97]}…")


class Packets:
    """What arrives over a v2 connection, by kind."""

    def __init__(self, connection: socket.socket, run: Run) -> None:
        self._connection = connection
        self._run = run
        self._unread = bytearray()
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.code: int | None = None

    def read(self) -> None:
        """Take in what comes next. Raises DeviceError."""
        chunk = _receive(self._connection, self._run)
        if not chunk:
            raise self._run.cut("closed")
        self._unread += chunk
        while len(self._unread) >= _HEADER_BYTES:
            end = _HEADER_BYTES + int.from_bytes(self._unread[1:_HEADER_BYTES], "little")
            if len(self._unread) < end:
                break
            self._take(self._unread[0], self._unread[_HEADER_BYTES:end])
            del self._unread[:end]

    def _take(self, kind: int, data: bytearray) -> None:
        if kind == _STDOUT:
            self.stdout += data
        elif kind == _STDERR:
            self.stderr += data
        elif kind == _EXIT:
            self.code = data[0]
        else:
            raise ProtocolError(f"{self._run.serial}: a shell packet of the unknown kind {kind}")
        if len(self.stdout) + len(self.stderr) > self._run.limit_bytes:
            raise self._run.too_much()


# A shell reads from a socket byte by byte, so what is the same for each command is told once.
_RUN = 'run(){ (eval "$1")</dev/null;c=$?;echo $2 $c;echo $2>&2;}\n'


class KeptShell:
    """A shell on the phone that is fed one command after the other."""

    def __init__(self, transport: Transport, timeout_s: float) -> None:
        self._connection = transport.open("shell,v2,raw:exec sh", timeout_s)
        self._untold = _RUN

    def close(self) -> None:
        self._connection.close()

    def stirred(self) -> bool:
        """Tell whether something came although nothing was asked: it ended, or some process still prints."""
        return bool(select.select([self._connection], [], [], 0)[0])

    def run(self, run: Run) -> Output:
        """Run a command between marks that it cannot guess."""
        mark = secrets.token_hex(8)
        line = f"{self._untold}run {shlex.quote(run.command)} {mark}\n"
        self._untold = ""
        try:
            self._connection.settimeout(run.deadline_s)
            self._connection.sendall(packet(_STDIN, line.encode("utf-8", "surrogateescape")))
        except OSError as error:
            raise run.cut(error.strerror or str(error)) from error
        packets = Packets(self._connection, run)
        out, err = _Marked(packets.stdout, mark), _Marked(packets.stderr, mark)
        # Both are looked at each time: they fill in any order.
        while not all([out.complete(), err.complete()]):
            if packets.code is not None:
                raise run.cut("the phone's shell ended")
            packets.read()
        return Output(out.before(), err.before(), int(out.after()))


class _Marked:
    """A stream that ends at a line with a mark; no byte is searched twice."""

    def __init__(self, data: bytearray, mark: str) -> None:
        self._data = data
        self._mark = mark.encode()
        self._searched = 0
        self._at = -1

    def complete(self) -> bool:
        if self._at < 0:
            self._at = self._data.find(self._mark, self._searched)
            self._searched = max(0, len(self._data) - len(self._mark))
        return self._at >= 0 and self._data.endswith(b"\n")

    def before(self) -> bytes:
        return bytes(self._data[: self._at])

    def after(self) -> bytes:
        return bytes(self._data[self._at + len(self._mark) :]).strip()


# Such a phone takes 4 KiB a packet, and a service's name has to fit into one: longer commands are fed to a shell.
_LONGEST_V1_BYTES = 3500


def run_v1(transport: Transport, run: Run) -> Output:
    """Run a command on a phone whose shell sends one stream and no exit code.

    Its standard error is caught in a variable and sent after the rest, behind a mark; NUL bytes in it are lost.
    """
    mark = secrets.token_hex(8)
    script = (
        f"exec 3>&1;e=$( (eval {shlex.quote(run.command)})2>&1 >&3 3>&-</dev/null;echo {mark} $?);"
        f"printf '%s\\n' {mark}\"$e\""
    )  # "$((" would begin arithmetic
    data = bytearray()
    longer = len(script.encode()) > _LONGEST_V1_BYTES
    with transport.open("exec:sh" if longer else f"exec:{script}", run.deadline_s) as connection:
        if longer:
            connection.sendall(f"{script}\nexit\n".encode())
        while chunk := _receive(connection, run):
            data += chunk
            if len(data) > run.limit_bytes:
                raise run.too_much()
    parts = bytes(data).split(mark.encode())
    if len(parts) != 3:
        raise run.cut("no exit code came")
    return Output(parts[0], parts[1], int(parts[2]))


def fed(connection: socket.socket, stream: BinaryIO, run: Run) -> bytes:
    """Send a stream to a command and return what it prints; one that refuses says so while it is still sent to."""
    said = bytearray()
    while not select.select([connection], [], [], 0)[0] and (chunk := stream.read(_SEND_BYTES)):
        try:
            connection.settimeout(max(run.deadline.left_s(), 0.001))
            connection.sendall(chunk)
        except TimeoutError as error:
            raise run.late() from error
        except OSError as error:
            if words := _last_words(connection):
                return words
            raise run.cut(error.strerror or str(error)) from error
    while received := _receive(connection, run):
        said += received
        if len(said) > run.limit_bytes:
            raise run.too_much()
    return bytes(said)


def _last_words(connection: socket.socket) -> bytes:
    """Return what a command said before it hung up."""
    try:
        return connection.recv(_READ_BYTES)
    except OSError:
        return b""


def _receive(connection: socket.socket, run: Run) -> bytes:
    left_s = run.deadline.left_s()
    if left_s == 0:
        raise run.late()
    try:
        connection.settimeout(left_s)
        if _QUICK_ACK is not None:
            connection.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)
        return connection.recv(_READ_BYTES)
    except TimeoutError as error:
        raise run.late() from error
    except OSError as error:
        raise run.cut(error.strerror or str(error)) from error


def packet(kind: int, data: bytes = b"") -> bytes:
    return bytes([kind]) + len(data).to_bytes(4, "little") + data
