"""adb's sync protocol over one connection (AOSP `packages/modules/adb/SYNC.TXT`, `file_sync_protocol.h`)."""

from __future__ import annotations

import contextlib
import select
import socket
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

from profiler.devices.android.adb import read_exact
from profiler.errors import InputError, ProtocolError

# Bytes done, bytes in all.
Progress = Callable[[int, int], None]

CHUNK_BYTES = 1 << 16
_HEADER_BYTES = 8
# So many chunks go out, or come in, in one call.
CHUNKS = 16
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


class Refused(Exception):
    """The phone said FAIL, and why."""


class SyncConnection:
    """Requests to a phone's sync service, one after the other. Raises Refused, OSError and ProtocolError."""

    def __init__(self, connection: socket.socket, features: frozenset[str]) -> None:
        self._connection = connection
        self._second_version = "sendrecv_v2" in features

    def stat(self, path: str) -> FileState | None:
        """Describe a file, or return None where there is none; only phones with `stat_v2` can."""
        self._connection.sendall(_request(b"STA2", path))
        name, error, _, _, mode, _, _, _, size, _, mtime, _ = _STAT_V2.unpack(
            read_exact(self._connection, _STAT_V2.size)
        )
        if name != b"STA2":
            raise ProtocolError(f"{name!r} where a file's state was due")
        if error and error not in _GONE:
            raise Refused(_WIRE_ERRORS.get(error, f"error {error}"))
        return None if error else FileState(mode, size, mtime)

    def send(
        self, stream: BinaryIO, source: Path, path: str, mode: int, mtime_s: int, total: int, progress: Progress | None
    ) -> int:
        """Write a file, and return its bytes."""
        self._open_for_writing(path, mode | stat.S_IFREG)
        buffer = memoryview(bytearray(CHUNKS * (_HEADER_BYTES + CHUNK_BYTES)))
        sent = 0
        while True:
            used, payload = _fill(buffer, stream, source)
            if not payload:
                break
            # A phone that gives up goes on reading but not writing; what it says must be heard now.
            if select.select([self._connection], [], [], 0)[0]:
                self._expect_okay()
                raise ProtocolError(f"OKAY in the middle of {path}")
            self._connection.sendall(buffer[:used])
            sent += payload
            if progress is not None:
                progress(sent, max(total, sent))
        self._connection.sendall(struct.pack("<4sI", b"DONE", min(max(mtime_s, 0), _LAST_MTIME_S)))
        self._expect_okay()
        return sent

    def receive(self, stream: BinaryIO, path: str, total: int, progress: Progress | None) -> int:
        """Read a file, and return its bytes."""
        self._connection.sendall(self._reading_request(path))
        arriving, received = _Arriving(self._connection), 0
        while True:
            name, length = arriving.header()
            if name == b"DONE":
                return received
            if name != b"DATA" or length > CHUNK_BYTES:
                _fail(name, arriving.take(length) if name == b"FAIL" else b"")
            stream.write(arriving.take(length))
            received += length
            if progress is not None:
                progress(received, max(total, received))

    def last_words(self) -> str | None:
        """Return why the phone hung up, where it said so before."""
        try:
            self._connection.settimeout(1.0)
            self._expect_okay()
        except Refused as refused:
            return str(refused)
        except (OSError, ProtocolError):
            pass
        return None

    def _open_for_writing(self, path: str, mode: int) -> None:
        if self._second_version:
            self._connection.sendall(_request(b"SND2", path) + struct.pack("<4sII", b"SND2", mode, 0))
        else:
            self._connection.sendall(_request(b"SEND", f"{path},{mode}"))

    def _reading_request(self, path: str) -> bytes:
        if self._second_version:
            return _request(b"RCV2", path) + struct.pack("<4sI", b"RCV2", 0)
        return _request(b"RECV", path)

    def _expect_okay(self) -> None:
        name, length = struct.unpack("<4sI", read_exact(self._connection, _HEADER_BYTES))
        if name != b"OKAY":
            _fail(name, read_exact(self._connection, length) if name == b"FAIL" else b"")


def _fail(name: bytes, reason: bytes | memoryview) -> NoReturn:
    if name != b"FAIL":
        raise ProtocolError(f"{name!r} is no answer of a sync service")
    raise Refused(bytes(reason).decode("utf-8", "replace"))


def _request(name: bytes, path: str) -> bytes:
    data = path.encode("utf-8", "surrogateescape")
    return name + len(data).to_bytes(4, "little") + data


def _fill(buffer: memoryview, stream: BinaryIO, source: Path) -> tuple[int, int]:
    """Fill a buffer with chunks, each behind its header; return its bytes in use, and the file's in it."""
    used = payload = 0
    while used < len(buffer):
        body = used + _HEADER_BYTES
        with told(source, "read"):
            count = stream.readinto(buffer[body : body + CHUNK_BYTES])  # type: ignore[attr-defined]
        if not count:
            break
        struct.pack_into("<4sI", buffer, used, b"DATA", count)
        used, payload = body + count, payload + count
    return used, payload


class _Arriving:
    """What the phone sends, read in large pieces; a view of it is good until the next is taken."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = memoryview(bytearray(CHUNKS * CHUNK_BYTES))
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


@contextlib.contextmanager
def told(path: Path, what: str = "write") -> Iterator[None]:
    """Name the file here that cannot be read or written; what goes wrong between here and a phone passes."""
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        raise InputError(f"cannot {what} {path}: {error.strerror or error}") from error
