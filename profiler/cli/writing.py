"""Files that a report makes: places looked at before anything is made, and each file whole or not there."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from profiler.errors import InputError

_ELSEWHERE = "Name another place."


def check_places(files: Iterable[Path], *, force: bool) -> None:
    """Refuse a place that no plain file can have, or that is taken and may not be overwritten. Raises InputError."""
    for file in files:
        mode = _mode(file)
        if mode is None:
            _check_folder(file)
        elif stat.S_ISDIR(mode):
            raise InputError(f"{file} is a folder", hint="Name a file in it.")
        elif stat.S_ISLNK(mode):  # its target, which nobody named, would be lost, or the link itself
            raise InputError(f"{file} is a link", hint="Name the file that it leads to, or another.")
        elif not stat.S_ISREG(mode):
            raise InputError(f"{file} is no plain file", hint=_ELSEWHERE)
        elif not force:
            raise InputError(f"{file} is there already", hint="Name another file, or overwrite it: --force")


def check_folder_of_figures(folder: Path) -> None:
    """Refuse a folder that is not there and cannot be made in one that is. Raises InputError."""
    mode = _mode(folder)
    if mode is None:
        _check_folder(folder)
    elif not folder.is_dir():
        raise InputError(f"{folder} is no folder", hint=_ELSEWHERE)


def write_whole(file: Path, data: bytes) -> int:
    """Write a file under another name first, then give it its own by one rename. Raises InputError."""
    temporary = file.with_name(f".{secrets.token_hex(6)}.tmp")  # short: the file's name may be as long as names can be
    try:
        with temporary.open("xb") as stream:
            stream.write(data)
        os.replace(temporary, file)
    except BaseException as error:  # a signal too leaves nothing half-written
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise InputError(f"cannot write {file}: {error.strerror or error}", hint=_ELSEWHERE) from error
        raise
    return len(data)


def make_folder(folder: Path) -> None:
    """Make a folder for figures in one that is there. Raises InputError."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder}: {error.strerror or error}", hint=_ELSEWHERE) from error


def _mode(path: Path) -> int | None:
    """Return what is at a path, a link for itself; None for nothing."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot write {path}: {reason}", hint=_ELSEWHERE) from error


def _check_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise InputError(
            f"cannot write {file}: there is no folder {file.parent}", hint=f"Make it: mkdir -p {file.parent}"
        )
