"""The package manager's installing half: streamed (`cmd package install -S`, `abb_exec:`) and from a pushed file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from tests.phones.android.apps import Apps
from tests.phones.android.ask_server import Answer
from tests.phones.android.packages import ApkError, read_apk
from tests.phones.android.rootfs import Rootfs

_PIECE_BYTES = 1 << 20
_USER_RESTRICTED = "INSTALL_FAILED_USER_RESTRICTED: Install canceled by user"


class Installer:
    """Install and remove packages; a test may order the next failure, or let the user forbid all."""

    def __init__(self, files: Rootfs, apps: Apps, free_bytes: Callable[[], int]) -> None:
        self.user_restricted = False
        self.next_failure: str | None = None
        self._files = files
        self._apps = apps
        self._free_bytes = free_bytes
        self._count = 0

    def serves(self, words: Sequence[str]) -> bool:
        """Return whether `pm …` or `cmd package …` in `words` is about installing or removing."""
        return self._verb(words) in ("install", "uninstall")

    def run(self, words: Sequence[str], incoming: BinaryIO) -> Answer:
        """Do it; a streamed package is read from `incoming`."""
        rest = list(words[1:] if words[0] in ("pm", "package") else words[2:])
        if rest[0] == "uninstall":
            return self._uninstall(rest[-1])
        try:
            self._install(rest[1:], incoming)
        except ApkError as error:
            return Answer(stderr=f"Failure [{error}]\n".encode(), code=1)
        return Answer(b"Success\n")

    def _verb(self, words: Sequence[str]) -> str:
        if words[:1] == ["pm"] or words[:1] == ["package"]:
            return words[1] if len(words) > 1 else ""
        return words[2] if words[:2] == ["cmd", "package"] and len(words) > 2 else ""

    def _install(self, arguments: list[str], incoming: BinaryIO) -> None:
        size, path = _size_and_path(arguments)
        file = self._receive(incoming, size) if path is None else self._copy(path)
        try:
            self._refuse_as_ordered()
            apk = read_apk(file, os.path.basename(path or ""))
            self._apps.check_version(apk, downgrade="-d" in arguments)
            self._apps.add(apk, file)
        finally:
            file.unlink(missing_ok=True)

    def _refuse_as_ordered(self) -> None:
        ordered, self.next_failure = self.next_failure, None
        if self.user_restricted or ordered:
            raise ApkError(ordered or _USER_RESTRICTED)

    def _receive(self, incoming: BinaryIO, size: int | None) -> Path:
        if size is None:
            raise ApkError("INSTALL_FAILED_INVALID_APK: no size given with -S")
        self._check_room(size)
        file = self._new_file()
        with file.open("wb") as out:
            while size and (piece := incoming.read(min(size, _PIECE_BYTES))):
                out.write(piece)
                size -= len(piece)
        if size:
            file.unlink()
            raise ApkError(f"INSTALL_FAILED_INVALID_APK: {size} bytes are missing")
        return file

    def _copy(self, path: str) -> Path:
        try:
            source = os.fdopen(self._files.open(path, os.O_RDONLY), "rb")
        except OSError:
            raise ApkError(f"INSTALL_FAILED_INVALID_URI: Error: Unable to open file: {path}") from None
        with source:
            return self._receive(source, os.fstat(source.fileno()).st_size)

    def _check_room(self, size: int) -> None:
        if size > self._free_bytes():
            raise ApkError("INSTALL_FAILED_INSUFFICIENT_STORAGE: Failed to override installation location")

    def _new_file(self) -> Path:
        self._count += 1
        return self._files.root / "data/app" / f"vmdl{self._count}.tmp"

    def _uninstall(self, package: str) -> Answer:
        if self._apps.remove(package):
            return Answer(b"Success\n")
        return Answer(b"Failure [DELETE_FAILED_INTERNAL_ERROR]\n", code=1)


def _size_and_path(arguments: list[str]) -> tuple[int | None, str | None]:
    size: int | None = None
    path: str | None = None
    words = iter(arguments)
    for word in words:
        if word == "-S":
            size = int(next(words, "0"))
        elif word in ("-i", "--user", "--install-location", "--abi"):
            next(words, None)
        elif not word.startswith("-"):
            path = word
    return size, None if path in (None, "-") else path
