"""Files of the phone on this machine: device paths, links and permissions as the phone's shell user has them."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import ParamSpec, TypeVar

SHELL_UID = 2000
_MOST_LINKS = 40
_WRITABLE = ("data", "storage")  # what counts as the phone's storage


Given = ParamSpec("Given")
Got = TypeVar("Got")


def _as_shell(touch: Callable[Given, Got]) -> Callable[Given, Got]:
    """Let the kernel judge by the shell user's rights, in this thread only; we have no other where we are not root."""
    if os.geteuid() != 0:
        return touch
    libc = ctypes.CDLL(None)

    @functools.wraps(touch)
    def touching(*args: Given.args, **kwargs: Given.kwargs) -> Got:
        libc.setfsgid(SHELL_UID)
        libc.setfsuid(SHELL_UID)
        try:
            return touch(*args, **kwargs)
        finally:
            libc.setfsuid(0)
            libc.setfsgid(0)

    return touching


class Rootfs:
    """A folder that is the phone's `/`; every method takes device paths and raises OSError as the phone would.

    Links are followed within the folder, by hand: to the kernel an absolute link would lead out of it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._folder)

    def host_path(self, path: str) -> Path:
        """Return where a device path is on this machine, its links followed."""
        return self.root / self._resolve(path, follow=True)

    @_as_shell
    def open(self, path: str, flags: int, mode: int = 0o666) -> int:
        """Open a file; the caller closes the descriptor."""
        return os.open(self._resolve(path, follow=True), flags | os.O_CLOEXEC, mode, dir_fd=self._folder)

    @_as_shell
    def stat(self, path: str, *, follow: bool) -> os.stat_result:
        """Return what `stat` (or, not following, `lstat`) says."""
        return os.stat(self._resolve(path, follow=follow), dir_fd=self._folder, follow_symlinks=False)

    @_as_shell
    def names(self, path: str) -> list[str]:
        """Return the names in a folder, `.` and `..` first."""
        folder = os.open(self._resolve(path, follow=True), os.O_RDONLY | os.O_DIRECTORY, dir_fd=self._folder)
        try:
            return [".", "..", *sorted(os.listdir(folder))]
        finally:
            os.close(folder)

    @_as_shell
    def make_folders(self, path: str) -> None:
        """Create a folder and those above it, as far as they are missing."""
        parts = PurePosixPath("/", path).parts[1:]
        for count in range(1, len(parts) + 1):
            try:
                os.mkdir(self._resolve("/".join(parts[:count]), follow=True), 0o775, dir_fd=self._folder)
            except FileExistsError:
                pass

    @_as_shell
    def remove(self, path: str) -> None:
        """Unlink a file."""
        os.unlink(self._resolve(path, follow=False), dir_fd=self._folder)

    @_as_shell
    def link(self, target: str, path: str) -> None:
        """Make a symbolic link that says `target`."""
        os.symlink(target, self._resolve(path, follow=False), dir_fd=self._folder)

    @_as_shell
    def set_time(self, path: str, seconds: int) -> None:
        """Set when a file was last changed and read."""
        os.utime(self._resolve(path, follow=False), (seconds, seconds), dir_fd=self._folder, follow_symlinks=False)

    def used_bytes(self) -> int:
        """Return the length of all files in the phone's storage; holes count, as they would not be holes on it."""
        total = 0
        for top in _WRITABLE:
            for folder, _, names in os.walk(self.root / top):
                for name in names:
                    try:
                        total += os.lstat(os.path.join(folder, name)).st_size
                    except FileNotFoundError:
                        pass  # removed just now
        return total

    def _resolve(self, path: str, *, follow: bool) -> str:
        todo = _parts(path)
        done: list[str] = []
        links = 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                del done[-1:]
                continue
            target = self._target([*done, part]) if todo or follow else None
            if target is None:
                done.append(part)
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            if target.startswith("/"):
                done = []
            todo = [*_parts(target), *todo]
        return "/".join(done) or "."

    def _target(self, parts: list[str]) -> str | None:
        try:
            return os.readlink("/".join(parts), dir_fd=self._folder)
        except OSError:
            return None  # no link, or nothing there: whoever uses the path is told


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]
