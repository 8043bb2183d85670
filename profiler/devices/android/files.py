"""Files to and from a phone over adb's sync protocol (AOSP `packages/modules/adb/SYNC.TXT`, `file_sync_protocol.h`)."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from profiler.devices.android.adb import Transport, read_exact
from profiler.devices.android.shell import Shell, quoted
from profiler.errors import DeviceError, InputError, MissingSource, ProtocolError

# Bytes done, bytes in all.
Progress = Callable[[int, int], None]

_CHUNK_BYTES = 1 << 16
_HEADER_BYTES = 8
# So many chunks go out, or come in, in one call.
_CHUNKS = 16
_STALL_S = 30.0
_LAST_MTIME_S = 0xFFFFFFFF
_STAT_V2 = struct.Struct("<4sIQQIIIIQqqq")
_WIRE_ERRORS = {1: "Operation not permitted", 2: "No such file or directory", 13: "Permission denied"}
_GONE = (2, 20)  # ENOENT, ENOTDIR


class FileState(NamedTuple):
    """A file or folder on a phone, links followed."""

    mode: int
    size_bytes: int
    mtime_s: int

    @property
    def is_folder(self) -> bool:
        """Tell whether it is a folder."""
        return stat.S_ISDIR(self.mode)


class Outgoing(NamedTuple):
    """A file to send."""

    source: Path
    path: str
    mode: int = 0o644
    mtime_s: int | None = None
    progress: Progress | None = None


class Files:
    """Files on one phone; `stall_s` is how long nothing at all may move."""

    def __init__(self, transport: Transport, shell: Shell, *, stall_s: float = _STALL_S) -> None:
        self._transport = transport
        self._shell = shell
        self._stall_s = stall_s
        self._known_features: frozenset[str] | None = None

    def stat(self, path: str) -> FileState | None:
        """Describe a file, or return None where there is none. Raises DeviceError where it may not be looked at."""
        if "stat_v2" not in self._features():
            return self._stat_by_shell(path)
        with self._connection() as connection, self._conversation(f"look at {path}", connection):
            return self._stat_over(connection, path)

    def push(
        self,
        source: Path,
        path: str,
        *,
        mode: int = 0o644,
        mtime_s: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Send a file, which appears on the phone whole or not at all, and return its bytes.

        Raises MissingSource or InputError where it cannot be read, DeviceError with the phone's own reason.
        """
        part = f"{path}.part"
        with self._connection() as connection:
            with self._conversation(f"write {path}", connection):
                self._refuse_folder(connection, path)
            try:
                sent = self._send_file(connection, Outgoing(source, part, mode, mtime_s, progress), path)
                with self._conversation(f"write {path}", connection):
                    self._complete(connection, part, path, sent)
            except BaseException:
                self._forget(part)
                raise
        return sent

    def push_staged(self, files: Iterable[Outgoing]) -> None:
        """Send files one after the other to places that nobody looks at before they are proven; some may be cut short.

        Raises as `push` does.
        """
        with self._connection() as connection:
            for file in files:
                self._send_file(connection, file, file.path)

    def pull(self, path: str, destination: Path, *, progress: Progress | None = None) -> int:
        """Fetch a file, which appears here whole or not at all, and return its bytes.

        Raises DeviceError with the phone's own reason, InputError where it cannot be written.
        """
        known = self.stat(path)
        if known is None or known.is_folder:
            raise self._failed(f"read {path}", "it is a folder" if known else "there is no such file")
        part = destination.with_name(f"{destination.name}.part")
        try:
            with self._connection() as connection, self._conversation(f"read {path}", connection):
                connection.sendall(self._reading_request(path))
                with _writing(part) as stream:
                    received = self._receive(connection, stream, path, known.size_bytes, progress)
            with _told(destination):
                os.utime(part, (known.mtime_s, known.mtime_s))
                part.replace(destination)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return received

    def _features(self) -> frozenset[str]:
        if self._known_features is None:
            self._known_features = self._transport.features()
        return self._known_features

    def _stat_over(self, connection: socket.socket, path: str) -> FileState | None:
        if "stat_v2" not in self._features():
            return self._stat_by_shell(path)
        connection.sendall(_request(b"STA2", path))
        return self._state(path, read_exact(connection, _STAT_V2.size))

    def _stat_by_shell(self, path: str) -> FileState | None:
        """Ask the phone's own stat: sizes in the first sync protocol end at 4 GiB, and denied looks like missing."""
        output = self._shell.run(f"stat -L -c '%f %s %Y' {quoted(path)}")
        if output.code == 0:
            mode, size, mtime = output.text.split()
            return FileState(int(mode, 16), int(size), int(mtime))
        if "No such file" in output.complaint or "Not a directory" in output.complaint:
            return None
        raise self._failed(f"look at {path}", output.complaint)

    def _state(self, path: str, answer: bytes) -> FileState | None:
        name, error, _, _, mode, _, _, _, size, _, mtime, _ = _STAT_V2.unpack(answer)
        if name != b"STA2":
            raise ProtocolError(f"{self._transport.serial}: {name!r} where a file's state was due")
        if error in _GONE:
            return None
        if error:
            raise self._failed(f"look at {path}", _WIRE_ERRORS.get(error, f"error {error}"))
        return FileState(mode, size, mtime)

    def _refuse_folder(self, connection: socket.socket, path: str) -> None:
        known = self._stat_over(connection, path)
        if known is not None and known.is_folder:
            raise self._failed(f"write {path}", "it is a folder")

    def _open_for_writing(self, connection: socket.socket, path: str, mode: int) -> None:
        mode |= stat.S_IFREG
        if "sendrecv_v2" in self._features():
            connection.sendall(_request(b"SND2", path) + struct.pack("<4sII", b"SND2", mode, 0))
        else:
            connection.sendall(_request(b"SEND", f"{path},{mode}"))

    def _reading_request(self, path: str) -> bytes:
        if "sendrecv_v2" in self._features():
            return _request(b"RCV2", path) + struct.pack("<4sI", b"RCV2", 0)
        return _request(b"RECV", path)

    def _send_file(self, connection: socket.socket, file: Outgoing, shown: str) -> int:
        """Send one file whose path is told as `shown`, and return its bytes."""
        with _opened(file.source) as stream, self._conversation(f"write {shown}", connection):
            known = os.fstat(stream.fileno())
            self._open_for_writing(connection, file.path, file.mode)
            sent = self._send(connection, stream, file, known.st_size)
            moment = int(known.st_mtime) if file.mtime_s is None else file.mtime_s
            connection.sendall(struct.pack("<4sI", b"DONE", min(max(moment, 0), _LAST_MTIME_S)))
            self._expect_okay(connection)
        return sent

    def _send(self, connection: socket.socket, stream: BinaryIO, file: Outgoing, total: int) -> int:
        buffer = memoryview(bytearray(_CHUNKS * (_HEADER_BYTES + _CHUNK_BYTES)))
        sent = 0
        while True:
            used, payload = _fill(buffer, stream, file.source)
            if not payload:
                break
            # A phone that gives up goes on reading but not writing; what it says must be heard now.
            if select.select([connection], [], [], 0)[0]:
                self._expect_okay(connection)
                raise ProtocolError(f"{self._transport.serial} says OKAY in the middle of {file.path}")
            connection.sendall(buffer[:used])
            sent += payload
            if file.progress is not None:
                file.progress(sent, max(total, sent))
        return sent

    def _receive(
        self, connection: socket.socket, stream: BinaryIO, path: str, total: int, progress: Progress | None
    ) -> int:
        arriving, received = _Arriving(connection), 0
        while True:
            name, length = arriving.header()
            if name == b"DONE":
                return received
            if name != b"DATA" or length > _CHUNK_BYTES:
                self._fail(name, arriving.take(length) if name == b"FAIL" else b"")
            stream.write(arriving.take(length))
            received += length
            if progress is not None:
                progress(received, max(total, received))

    def _expect_okay(self, connection: socket.socket) -> None:
        name, length = struct.unpack("<4sI", read_exact(connection, _HEADER_BYTES))
        if name != b"OKAY":
            self._fail(name, read_exact(connection, length) if name == b"FAIL" else b"")

    def _fail(self, name: bytes, reason: bytes | memoryview) -> NoReturn:
        if name != b"FAIL":
            raise ProtocolError(f"{self._transport.serial}: {name!r} is no answer of the sync service")
        raise _Refused(bytes(reason).decode("utf-8", "replace"))

    def _complete(self, connection: socket.socket, part: str, path: str, size: int) -> None:
        """Give a file its name once the phone has all of it."""
        known = self._stat_over(connection, part)
        if known is None or known.size_bytes != size:
            found = f"{known.size_bytes} bytes" if known else "nothing"
            raise self._failed(f"write {path}", f"{size} bytes were sent and {found} arrived")
        self._shell.check(f"mv -f {quoted(part, path)}")

    def _forget(self, part: str) -> None:
        """Remove what is left of a push; a phone that is gone cannot, and is none the worse for it."""
        with contextlib.suppress(DeviceError):
            self._shell.run(f"rm -f {quoted(part)}", deadline_s=2.0)

    def _connection(self) -> socket.socket:
        return self._transport.open("sync:", self._stall_s)

    @contextlib.contextmanager
    def _conversation(self, what: str, connection: socket.socket) -> Iterator[None]:
        """Turn what may go wrong while something is done over a connection into DeviceError."""
        try:
            yield
        except _Refused as error:
            raise self._failed(what, str(error)) from error
        except TimeoutError as error:
            raise self._failed(what, f"nothing moved for {self._stall_s:g} s") from error
        except (BrokenPipeError, ConnectionError) as error:
            raise self._failed(what, _last_words(connection) or "the connection broke") from error

    def _failed(self, what: str, reason: str) -> DeviceError:
        hint = next((hint for sign, hint in _HINTS.items() if sign in reason), None)
        return DeviceError(f"{self._transport.serial}: cannot {what}: {reason}", hint=hint)


_HINTS = {
    "No space left": "Make room on the phone, or remove old bundles: profile devices --forget-bundles",
    "Permission denied": "Only /data/local/tmp and shared storage can be written without root.",
    "Read-only": "Only /data/local/tmp and shared storage can be written without root.",
    "nothing moved": "Replug the cable; if that does not help, restart the phone.",
    "connection broke": "Check the cable, then start again: what has arrived is not sent twice.",
}


class _Refused(Exception):
    """The phone said FAIL."""


def _request(name: bytes, path: str) -> bytes:
    data = path.encode("utf-8", "surrogateescape")
    return name + len(data).to_bytes(4, "little") + data


def _fill(buffer: memoryview, stream: BinaryIO, source: Path) -> tuple[int, int]:
    """Fill a buffer with chunks, each behind its header; return its bytes in use, and the file's in it."""
    used = payload = 0
    while used < len(buffer):
        body = used + _HEADER_BYTES
        with _told(source, "read"):
            count = stream.readinto(buffer[body : body + _CHUNK_BYTES])  # type: ignore[attr-defined]
        if not count:
            break
        struct.pack_into("<4sI", buffer, used, b"DATA", count)
        used, payload = body + count, payload + count
    return used, payload


class _Arriving:
    """What the phone sends, read in large pieces; a view of it is good until the next is taken."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = memoryview(bytearray(_CHUNKS * _CHUNK_BYTES))
        self._start = self._end = 0

    def header(self) -> tuple[bytes, int]:
        name, length = struct.unpack("<4sI", self.take(_HEADER_BYTES))
        return name, length

    def take(self, count: int) -> memoryview:
        if self._start + count > len(self._buffer):
            rest = self._end - self._start
            self._buffer[:rest] = bytes(self._buffer[self._start : self._end])
            self._start, self._end = 0, rest
        while self._end - self._start < count:
            got = self._connection.recv_into(self._buffer[self._end :])
            if not got:
                raise ConnectionResetError("the connection was closed")
            self._end += got
        self._start += count
        return self._buffer[self._start - count : self._start]


def _last_words(connection: socket.socket) -> str | None:
    """Return why the phone hung up, where it said so before."""
    try:
        connection.settimeout(1.0)
        name, length = struct.unpack("<4sI", read_exact(connection, _HEADER_BYTES))
        return read_exact(connection, length).decode("utf-8", "replace") if name == b"FAIL" else None
    except OSError:
        return None


def _opened(source: Path) -> BinaryIO:
    if not source.is_file():
        raise MissingSource(f"there is no file {source} to send")
    with _told(source, "read"):
        return source.open("rb", buffering=0)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[BinaryIO]:
    with _told(path), path.open("wb", buffering=_CHUNKS * _CHUNK_BYTES) as stream:
        yield stream


@contextlib.contextmanager
def _told(path: Path, what: str = "write") -> Iterator[None]:
    """Name the file here that cannot be read or written; what goes wrong between here and a phone passes."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise InputError(f"cannot {what} {path}: {error.strerror or error}") from error
