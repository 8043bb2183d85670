"""The files of a bundle: safe paths, hashes, and writing that leaves a whole folder or nothing."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from profiler import codec
from profiler.errors import InputError, InternalError, InvalidRecord, MissingSource
from profiler.locks import hold
from profiler.records.bundle import Bundle, BundleFile, Component, TaskPlan
from profiler.records.plan import Plan, Schedules
from profiler.records.record import Task

MANIFEST = "bundle.json"
_CHUNK_BYTES = 1024 * 1024

# Absolute path → size in bytes, modification time in ns, sha256.
Receipts = dict[str, tuple[int, int, str]]
_UNSAFE_CHARACTERS = set("\\:\0")  # separators and drives elsewhere; the end of a C string


def sha256_of(path: Path) -> str:
    """Hash a file in chunks."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def inside(folder: Path, relative: str) -> Path:
    """Return the path of a file in a folder. Raises InvalidRecord where it would lead outside or is a link."""
    pure = PurePosixPath(relative)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or set(relative) & _UNSAFE_CHARACTERS:
        raise InvalidRecord(f"{folder}: unsafe path {relative!r} in the manifest")
    path = folder
    for part in pure.parts:
        path = path / part
        if path.is_symlink():
            raise InvalidRecord(f"{path} is a link; a bundle holds plain files only")
    return path


def describe(folder: Path, relative: str) -> BundleFile:
    """Measure one file of a bundle."""
    path = inside(folder, relative)
    return BundleFile(path=relative, size_bytes=path.stat().st_size, sha256=sha256_of(path))


def load_manifest(folder: Path) -> Bundle:
    """Read a bundle's manifest. Raises MissingSource where there is none."""
    path = folder / MANIFEST
    if not path.is_file():
        raise MissingSource(f"{folder} holds no bundle: no {MANIFEST} there", hint="Make one: profile export --help")
    return codec.read(inside(folder, MANIFEST), Bundle)


def manifest_sha256(folder: Path) -> str:
    """Return the bundle's identity: its manifest's hash, which covers every file by theirs."""
    return sha256_of(folder / MANIFEST)


def load_plan(folder: Path, bundle: Bundle, task: Task) -> Plan:
    """Read a task's default plan."""
    return codec.read(inside(folder, _task(bundle, task).plan), Plan)


def load_schedules(folder: Path, bundle: Bundle, task: Task) -> Schedules:
    """Read the step counts that a task's plan can run with."""
    return codec.read(inside(folder, _task(bundle, task).schedules), Schedules)


def _task(bundle: Bundle, task: Task) -> TaskPlan:
    if task not in bundle.tasks:
        raise InputError(f"{bundle.model} cannot {task}; it can {' and '.join(sorted(bundle.tasks))}")
    return bundle.tasks[task]


def check_names(folder: Path, bundle: Bundle) -> None:
    """Make sure that the manifest lists every file it uses: one without a hash could be any. Raises InvalidRecord."""
    used = {bundle.prompt_encoding.tokenizer} if bundle.prompt_encoding else set()
    used |= {path for component in bundle.components.values() for path in component.files}
    used |= {path for task in bundle.tasks.values() for path in (task.plan, task.schedules, task.defaults.path)}
    used |= {path for component in bundle.components.values() for path in _opened(folder, component)}
    unlisted = sorted(used - {entry.path for entry in bundle.files})
    if unlisted or not bundle.tasks:
        what = f"uses {unlisted[0]!r}, but lists no such file" if unlisted else "has no task"
        raise InvalidRecord(f"{folder / MANIFEST} {what}", hint="Export the bundle again.")


def _opened(folder: Path, component: Component) -> Iterator[str]:
    """Yield the files that functions are opened from: a path of theirs is a file, or a folder of files."""
    for name in {link.path for function in component.functions.values() for link in function.links}:
        path = inside(folder, name)
        found = [file for file in sorted(path.rglob("*")) if not file.is_dir()] if path.is_dir() else []
        yield from [file.relative_to(folder).as_posix() for file in found] or [name]


def check_files(folder: Path, bundle: Bundle, receipts: Path | None = None) -> None:
    """Compare every file with the manifest. Raises InvalidRecord at the first that differs.

    `receipts` is a file that remembers what was hashed: a file whose size and time did not change since is not
    read again, so that gigabytes are hashed once.
    """
    remembered = _read_receipts(receipts)
    seen = {}
    for entry in bundle.files:
        path = inside(folder, entry.path)
        if not path.is_file():
            raise InvalidRecord(f"{path} is missing from the bundle")
        state = path.stat()
        receipt = (state.st_size, state.st_mtime_ns, entry.sha256)
        if state.st_size != entry.size_bytes or (remembered.get(str(path)) != receipt and not _is(path, entry)):
            raise InvalidRecord(f"{path} is not the file its manifest names", hint="Export the bundle again.")
        seen[str(path)] = receipt
    if receipts is not None and seen.items() - remembered.items():
        _write_receipts(receipts, {**remembered, **seen})


def _is(path: Path, entry: BundleFile) -> bool:
    return sha256_of(path) == entry.sha256


def _read_receipts(path: Path | None) -> Receipts:
    """Read what was remembered; a file that cannot be read is as good as none."""
    try:
        return codec.read(path, Receipts) if path is not None else {}
    except InputError:
        return {}


def _write_receipts(path: Path, receipts: Receipts) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
        temporary.write_bytes(codec.encode(receipts))
        temporary.replace(path)
    except OSError:
        pass  # hashing again next time is slower, not wrong


@contextlib.contextmanager
def written_whole(destination: Path) -> Iterator[Path]:
    """Give a temporary folder that becomes `destination` by one rename when the block ends well.

    What a killed writer left is removed first. Raises InputError where the destination is there already;
    nothing is ever overwritten.
    """
    check_free(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    for leftover in destination.parent.glob(f".{glob.escape(destination.name)}.*.lock"):
        _remove_unless_held(leftover)
    own = destination.parent / f".{destination.name}.{uuid.uuid4().hex[:8]}.lock"
    with contextlib.closing(_held(own)):
        temporary = own.with_suffix(".tmp")
        temporary.mkdir()
        try:
            yield temporary
            sync_tree(temporary)
            _rename(temporary, destination)
            sync_folder(destination.parent)
        finally:
            _remove(own)


def check_free(destination: Path) -> None:
    """Raise InputError where something has a bundle's name already."""
    if os.path.lexists(destination):
        raise _taken(destination)


def _rename(temporary: Path, destination: Path) -> None:
    try:
        temporary.rename(destination)
    except OSError as error:
        if os.path.lexists(destination):  # it came into being meanwhile
            raise _taken(destination) from error
        raise


def _taken(destination: Path) -> InputError:
    return InputError(
        f"{destination} is there already; it is never overwritten", hint="Name another folder with --out."
    )


def _held(path: Path) -> IO[str]:
    lock = hold(path)
    if lock is None:
        raise InternalError(f"{path} was just made, and is held by another process")
    return lock


def _remove_unless_held(path: Path) -> None:
    lock = hold(path)
    if lock is not None:
        _remove(path)
        lock.close()


def _remove(lock_file: Path) -> None:
    shutil.rmtree(lock_file.with_suffix(".tmp"), ignore_errors=True)
    lock_file.unlink(missing_ok=True)


def sync_tree(folder: Path) -> None:
    """Flush every file and folder below to the disk."""
    for path in sorted(folder.rglob("*"), reverse=True):
        sync_folder(path) if path.is_dir() else sync_file(path)
    sync_folder(folder)


def sync_file(path: Path) -> None:
    """Flush one file to the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def sync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
