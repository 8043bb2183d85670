"""Files to and from a phone: whole or not at all, and the phone's own reasons where it refuses."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from profiler.devices.android.adb import Transport
from profiler.devices.android.shell import Shell, quoted
from profiler.devices.android.sync_protocol import (
    CHUNK_BYTES,
    CHUNKS,
    FileState,
    Progress,
    Refused,
    SyncConnection,
    told,
)
from profiler.errors import DeviceError, MissingSource, ProtocolError

__all__ = ["FileState", "Files", "Outgoing", "Progress"]

_STALL_S = 30.0


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
        if not self._stats():
            return self._stat_by_shell(path)
        with self._conversation() as sync, self._told(f"look at {path}", sync):
            return sync.stat(path)

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
        with self._conversation() as sync:
            self._refuse_folder(sync, path)
            try:
                sent = self._send(sync, Outgoing(source, part, mode, mtime_s, progress), path)
                self._complete(sync, part, path, sent)
            except BaseException:
                self._forget(part)
                raise
        return sent

    def push_staged(self, files: Iterable[Outgoing]) -> None:
        """Send files one after the other to places that nobody looks at before they are proven; some may be cut short.

        Raises as `push` does.
        """
        with self._conversation() as sync:
            for file in files:
                self._send(sync, file, file.path)

    def pull(self, path: str, destination: Path, *, progress: Progress | None = None) -> int:
        """Fetch a file, which appears here whole or not at all, and return its bytes.

        Raises DeviceError with the phone's own reason, InputError where it cannot be written.
        """
        known = self.stat(path)
        if known is None or known.is_folder:
            raise self._failed(f"read {path}", "it is a folder" if known else "there is no such file")
        part = destination.with_name(f"{destination.name}.part")
        try:
            with self._conversation() as sync, self._told(f"read {path}", sync), _writing(part) as stream:
                received = sync.receive(stream, path, known.size_bytes, progress)
            with told(destination):
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

    def _stats(self) -> bool:
        return "stat_v2" in self._features()

    def _stat_by_shell(self, path: str) -> FileState | None:
        """Ask the phone's own stat: sizes in the first sync protocol end at 4 GiB, and denied looks like missing."""
        output = self._shell.run(f"stat -L -c '%f %s %Y' {quoted(path)}")
        if output.code == 0:
            mode, size, mtime = output.text.split()
            return FileState(int(mode, 16), int(size), int(mtime))
        if "No such file" in output.complaint or "Not a directory" in output.complaint:
            return None
        raise self._failed(f"look at {path}", output.complaint)

    def _refuse_folder(self, sync: SyncConnection, path: str) -> None:
        known = self._stat_over(sync, path)
        if known is not None and known.is_folder:
            raise self._failed(f"write {path}", "it is a folder")

    def _stat_over(self, sync: SyncConnection, path: str) -> FileState | None:
        if not self._stats():
            return self._stat_by_shell(path)
        with self._told(f"write {path}", sync):
            return sync.stat(path)

    def _send(self, sync: SyncConnection, file: Outgoing, shown: str) -> int:
        """Send one file whose path is told as `shown`, and return its bytes."""
        with _opened(file.source) as stream, self._told(f"write {shown}", sync):
            known = os.fstat(stream.fileno())
            moment = int(known.st_mtime) if file.mtime_s is None else file.mtime_s
            return sync.send(stream, file.source, file.path, file.mode, moment, known.st_size, file.progress)

    def _complete(self, sync: SyncConnection, part: str, path: str, size: int) -> None:
        """Give a file its name once the phone has all of it."""
        known = self._stat_over(sync, part)
        if known is None or known.size_bytes != size:
            found = f"{known.size_bytes} bytes" if known else "nothing"
            raise self._failed(f"write {path}", f"{size} bytes were sent and {found} arrived")
        self._shell.check(f"mv -f {quoted(part, path)}")

    def _forget(self, part: str) -> None:
        """Remove what is left of a push; a phone that is gone cannot, and is none the worse for it."""
        with contextlib.suppress(DeviceError):
            self._shell.run(f"rm -f {quoted(part)}", deadline_s=2.0)

    @contextlib.contextmanager
    def _conversation(self) -> Iterator[SyncConnection]:
        with self._transport.open("sync:", self._stall_s) as connection:
            yield SyncConnection(connection, self._features())

    @contextlib.contextmanager
    def _told(self, what: str, sync: SyncConnection) -> Iterator[None]:
        """Turn what may go wrong while something is done over a connection into DeviceError."""
        try:
            yield
        except Refused as error:
            raise self._failed(what, str(error)) from error
        except ProtocolError as error:
            raise ProtocolError(f"{self._transport.serial}: cannot {what}: {error}") from error
        except TimeoutError as error:
            raise self._failed(what, f"nothing moved for {self._stall_s:g} s") from error
        except ConnectionError as error:
            raise self._failed(what, sync.last_words() or "the connection broke") from error

    def _failed(self, what: str, reason: str) -> DeviceError:
        hint = next((hint for sign, hint in _HINTS.items() if sign in reason), None)
        return DeviceError(f"{self._transport.serial}: cannot {what}: {reason}", hint=hint)


_HINTS = {
    "No space left": "Delete files or apps on the phone, then try again.",
    "Permission denied": "Only /data/local/tmp and shared storage can be written without root.",
    "Read-only": "Only /data/local/tmp and shared storage can be written without root.",
    "nothing moved": "Replug the cable; if that does not help, restart the phone.",
    "connection broke": "Check the cable, then start again: what has arrived is not sent twice.",
}


def _opened(source: Path) -> BinaryIO:
    if not source.is_file():
        raise MissingSource(f"there is no file {source} to send")
    with told(source, "read"):
        return source.open("rb", buffering=0)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[BinaryIO]:
    with told(path), path.open("wb", buffering=CHUNKS * CHUNK_BYTES) as stream:
        yield stream
