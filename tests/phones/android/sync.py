"""The file service of adbd (AOSP `file_sync_protocol.h`): stat, list, send and receive, in both versions."""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Callable
from typing import NamedTuple

from tests.phones.android.intake import REQUEST, Intake, IntakeFailed
from tests.phones.android.rootfs import Rootfs
from tests.phones.android.streams import Stream, StreamClosed
from tests.phones.android.sync_status import ENTRY1, ENTRY2, STAT1, STAT2, long, short

DATA_MAX_BYTES = 64 * 1024
LONGEST_PATH_BYTES = 1024
_PIECE_BYTES = 1 << 20
_DRY_RUN = 0x80000000


class SyncFailed(Exception):
    """The service answers FAIL with this text and ends."""


class Sending(NamedTuple):
    """What the host says about a file before its bytes."""

    path: str
    mode: int
    dry_run: bool = False


class SyncService:
    """Serve one sync connection; `free_bytes` says what the phone still takes, `taken` hears of each write."""

    def __init__(
        self, stream: Stream, files: Rootfs, free_bytes: Callable[[], int], taken: Callable[[int], object]
    ) -> None:
        self._stream = stream
        self._files = files
        self._free_bytes = free_bytes
        self._taken = taken

    def run(self) -> None:
        """Answer requests until the host quits, something fails or the link goes."""
        try:
            while self._serve_one():
                pass
        except SyncFailed as failure:
            self._fail(str(failure))

    def _serve_one(self) -> bool:
        name, length = REQUEST.unpack(self._stream.receive_exactly(REQUEST.size))
        if length > LONGEST_PATH_BYTES:
            raise SyncFailed("path too long")
        path = os.fsdecode(self._stream.receive_exactly(length))
        serve = _REQUESTS.get(name)
        if name == b"QUIT":
            return False
        if serve is None:
            raise SyncFailed(f"unknown command {int.from_bytes(name, 'little'):08x}")
        serve(self, path)
        return True

    def _fail(self, reason: str) -> None:
        text = reason.encode(errors="surrogateescape")
        self._stream.write(REQUEST.pack(b"FAIL", len(text)) + text)

    # what is there

    def stat_1(self, path: str) -> None:
        """Answer STAT: sizes beyond 4 GiB wrap, as in real phones; zeros stand for what is not there."""
        self._stream.write(STAT1.pack(b"STAT", *short(self._status(path, follow=False)[0])))

    def stat_2(self, path: str) -> None:
        """Answer STA2, which follows links."""
        self._stream.write(STAT2.pack(b"STA2", *long(*self._status(path, follow=True))))

    def lstat_2(self, path: str) -> None:
        """Answer LST2, which does not."""
        self._stream.write(STAT2.pack(b"LST2", *long(*self._status(path, follow=False))))

    def list_1(self, path: str) -> None:
        """Answer LIST: entries, then DONE; what is no readable folder has no entries."""
        for name, status, error in self._entries(path):
            if not error:
                self._stream.write(ENTRY1.pack(b"DENT", *short(status), len(name)) + name)
        self._stream.write(ENTRY1.pack(b"DONE", 0, 0, 0, 0))

    def list_2(self, path: str) -> None:
        """Answer LIS2."""
        for name, status, error in self._entries(path):
            self._stream.write(ENTRY2.pack(b"DNT2", *long(status, error), len(name)) + name)
        self._stream.write(ENTRY2.pack(b"DONE", *(0,) * 12))

    def _entries(self, path: str) -> list[tuple[bytes, os.stat_result | None, int]]:
        try:
            names = self._files.names(path)
        except OSError:
            return []
        return [(os.fsencode(name), *self._status(f"{path}/{name}", follow=False)) for name in names]

    def _status(self, path: str, *, follow: bool) -> tuple[os.stat_result | None, int]:
        try:
            return self._files.stat(path, follow=follow), 0
        except OSError as error:
            return None, error.errno or errno.EIO

    # from the phone

    def receive_1(self, path: str) -> None:
        """Answer RECV with the file's bytes."""
        try:
            file = self._files.open(path, os.O_RDONLY)
        except OSError as error:
            raise SyncFailed(f"open failed: {error.strerror}") from None
        try:
            self._read_out(file)
        finally:
            os.close(file)
        self._stream.write(REQUEST.pack(b"DONE", 0))

    def receive_2(self, path: str) -> None:
        """Answer RCV2; a second packet says how it is packed, and we offer no packing."""
        (_, flags) = struct.unpack("<4sI", self._stream.receive_exactly(8))
        _refuse_unknown(flags)
        self.receive_1(path)

    def _read_out(self, file: int) -> None:
        while True:
            try:
                piece = os.read(file, _PIECE_BYTES)
            except OSError as error:
                raise SyncFailed(f"read failed: {error.strerror}") from None
            if not piece:
                return
            self._stream.write(_framed(piece))

    # to the phone

    def send_1(self, specification: str) -> None:
        """Take SEND: the path, a comma and the mode."""
        path, comma, mode = specification.rpartition(",")
        if not comma:
            raise SyncFailed("missing , in ID_SEND_V1")
        self._send(Sending(path, _mode(mode)))

    def send_2(self, path: str) -> None:
        """Take SND2; a second packet holds mode and packing."""
        (_, mode, flags) = struct.unpack("<4sII", self._stream.receive_exactly(12))
        _refuse_unknown(flags & ~_DRY_RUN)
        self._send(Sending(path, mode, dry_run=bool(flags & _DRY_RUN)))

    def _send(self, sending: Sending) -> None:
        seconds = self._take_link(sending) if stat.S_ISLNK(sending.mode) else self._take_file(sending)
        if not sending.dry_run:
            self._files.set_time(sending.path, seconds)
        self._stream.write(REQUEST.pack(b"OKAY", 0))

    def _take_link(self, sending: Sending) -> int:
        name, length = REQUEST.unpack(self._stream.receive_exactly(REQUEST.size))
        if name != b"DATA":
            raise SyncFailed("invalid data message: expected ID_DATA")
        target = self._stream.receive_exactly(length).rstrip(b"\0")
        self._make_room_for(sending.path)
        try:
            self._files.make_folders(os.path.dirname(sending.path))
            self._files.link(os.fsdecode(target), sending.path)
        except OSError as error:
            raise SyncFailed(f"symlink failed: {error.strerror}") from None
        name, seconds = REQUEST.unpack(self._stream.receive_exactly(REQUEST.size))
        if name != b"DONE":
            raise SyncFailed("invalid data message: expected ID_DONE")
        return int(seconds)

    def _take_file(self, sending: Sending) -> int:
        intake = Intake(self._stream, self._taken)
        try:
            return intake.run(None, 0) if sending.dry_run else self._take_into(sending, intake)
        except (SyncFailed, IntakeFailed) as failure:
            self._fail(str(failure))
            intake.swallow()
            raise StreamClosed from None

    def _take_into(self, sending: Sending, intake: Intake) -> int:
        self._make_room_for(sending.path)
        free_bytes = self._free_bytes()
        file = self._create(sending)
        try:
            return intake.run(file, free_bytes)
        except IntakeFailed:
            self._files.remove(sending.path)
            raise
        finally:
            os.close(file)

    def _make_room_for(self, path: str) -> None:
        status, _ = self._status(path, follow=False)
        if status is not None and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
            try:
                self._files.remove(path)
            except OSError:
                pass  # creating it says why

    def _create(self, sending: Sending) -> int:
        flags = os.O_WRONLY | os.O_CREAT
        try:
            file = self._files.open(sending.path, flags)
        except FileNotFoundError:
            file = self._create_below_new_folders(sending, flags)
        except OSError as error:
            raise SyncFailed(f"couldn't create file: {error.strerror}") from None
        mode = sending.mode & 0o777
        mode |= (mode >> 3) & 0o070  # group and others get what the owner has: real phones have no other owner
        mode |= (mode >> 3) & 0o007
        os.fchmod(file, mode)
        return file

    def _create_below_new_folders(self, sending: Sending, flags: int) -> int:
        try:
            self._files.make_folders(os.path.dirname(sending.path))
        except OSError as error:
            raise SyncFailed(f"secure_mkdirs() failed: {error.strerror}") from None
        try:
            return self._files.open(sending.path, flags)
        except OSError as error:
            raise SyncFailed(f"couldn't create file: {error.strerror}") from None


def _framed(piece: bytes) -> bytes:
    view = memoryview(piece)
    chunks = [view[start : start + DATA_MAX_BYTES] for start in range(0, len(piece), DATA_MAX_BYTES)]
    return b"".join(part for chunk in chunks for part in (REQUEST.pack(b"DATA", len(chunk)), chunk))


def _mode(text: str) -> int:
    """Read a number as `strtoul(…, 0)` does: octal after a nought."""
    try:
        return int(text, 8) if text.startswith("0") and text != "0" else int(text)
    except ValueError:
        raise SyncFailed("bad mode") from None


def _refuse_unknown(flags: int) -> None:
    if flags:
        raise SyncFailed(f"unknown flags: {flags}")


_REQUESTS: dict[bytes, Callable[[SyncService, str], None]] = {
    b"STAT": SyncService.stat_1,
    b"STA2": SyncService.stat_2,
    b"LST2": SyncService.lstat_2,
    b"LIST": SyncService.list_1,
    b"LIS2": SyncService.list_2,
    b"RECV": SyncService.receive_1,
    b"RCV2": SyncService.receive_2,
    b"SEND": SyncService.send_1,
    b"SND2": SyncService.send_2,
}
