"""A bundle on a phone: what is there, what must be sent, and what proves that it arrived.

One folder a bundle, named after its manifest's hash; while it is incomplete its name ends in `.part`. A file's receipt
(sha256, bytes, modification time, path) is written once the phone itself has hashed it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from profiler.bundle_files import MANIFEST, describe, inside, manifest_sha256
from profiler.devices.android.files import Files, Outgoing
from profiler.devices.android.receipts import (
    RECEIPTS,
    Receipt,
    copy,
    line_of,
    proven,
    read_hashes,
    read_receipts,
    read_states,
    time_of,
)
from profiler.devices.android.shell import Shell, quoted
from profiler.devices.android.storage import COMMAND as FREE_SPACE
from profiler.devices.android.storage import read_file_systems
from profiler.devices.android.unavailable import Unavailable
from profiler.errors import DeviceError, InvalidRecord
from profiler.quantities import format_bytes
from profiler.records.bundle import Bundle, BundleFile

BUNDLES = "/data/local/tmp/ondevice-profiler/bundles"
_MARGIN_BYTES = 128 << 20
# Files are hashed on the phone in groups of so many bytes: one command for many small ones, and none waits long.
_GROUP_BYTES = 64 << 20
_SLOWEST_BYTES_A_SECOND = 20_000_000
# What one command may name; adb takes twice that.
_COMMAND_BYTES = 32_000
_RECEIPT_BYTES = 128

# Bytes sent, bytes to send, the file under way.
Progress = Callable[[int, int, str], None]


class Placed(NamedTuple):
    """A bundle that is on the phone whole; `sent` are the files that had to cross the cable."""

    path: str
    sent: tuple[str, ...]
    sent_bytes: int
    reused: tuple[str, ...] = ()


class Content:
    """Bundles on one phone. What an interrupted call leaves behind, the next one goes on from."""

    def __init__(self, shell: Shell, files: Files, *, folder: str = BUNDLES, margin_bytes: int = _MARGIN_BYTES) -> None:
        self._shell = shell
        self._files = files
        self._folder = folder
        self._margin_bytes = margin_bytes

    def put(self, source: Path, bundle: Bundle, progress: Progress | None = None) -> Placed:
        """Bring a bundle to the phone, sending only what is not there. An unchanged one takes a single command.

        Raises DeviceError (no space, denied, gone, wrong after two tries), InvalidRecord where a file here is not what
        its manifest says or its name cannot be a phone's.
        """
        entries = _entries(source, bundle)
        identity = manifest_sha256(source)[:16]
        path = f"{self._folder}/{identity}"
        if self._is_whole(path, entries):
            return Placed(path, (), 0)
        part = f"{path}.part"
        self._take_up(path, part)
        self._drop_wrong(part, entries)
        reused = self._reuse(part, self._lacking(part, entries))
        lacking = self._lacking(part, entries)
        self._check_space(lacking)
        self._send(source, part, lacking, progress)
        self._complete(path, part, entries)
        reused = tuple(name for name in reused if name not in {entry.path for entry in lacking})
        return Placed(path, tuple(entry.path for entry in lacking), _size(lacking), reused)

    def bundles(self) -> tuple[str, ...]:
        """Return the names of the bundles on the phone, incomplete ones (`.part`) among them."""
        output = self._shell.run(f"ls -1 {quoted(self._folder)}")
        return tuple(output.text.split()) if output.code == 0 else ()

    def forget(self, keep: Collection[str] = ()) -> tuple[str, ...]:
        """Remove all bundles but those to keep, and return what was removed. Raises DeviceError."""
        gone = [name for name in self.bundles() if name.removesuffix(".part") not in keep]
        if gone:
            self._shell.check(f"cd {quoted(self._folder)} && rm -rf {quoted(*(f'./{name}' for name in gone))}", 120)
        return tuple(gone)

    def _is_whole(self, path: str, entries: Sequence[BundleFile]) -> bool:
        receipts, states = self._survey(path, entries)
        return all(proven(entry, receipts, states) for entry in entries)

    def _survey(
        self, path: str, entries: Sequence[BundleFile]
    ) -> tuple[dict[str, Receipt], dict[str, tuple[int, int]]]:
        """Return a folder's receipts, and the size and time of each file that is there."""
        said = ""
        for group in _commands([entry.path for entry in entries]):
            said += self._shell.run(
                f"cd {quoted(path)} && {{ cat {RECEIPTS}; echo; stat -c 'is %s %Y %n' {group}; }} 2>/dev/null"
            ).text
        return read_receipts(said), read_states(said)

    def _take_up(self, path: str, part: str) -> None:
        """Go on with what is there: a bundle that lost files is as good a start as one that never was complete."""
        self._shell.check(
            f"umask 022; mkdir -p {quoted(self._folder)} && if [ -d {quoted(path)} ]; then"
            f" if [ -d {quoted(part)} ]; then rm -rf {quoted(path)}; else mv {quoted(path, part)}; fi; fi;"
            f" mkdir -p {quoted(part)}",
            120,
        )

    def _drop_wrong(self, part: str, entries: Sequence[BundleFile]) -> None:
        """Remove files that are not the manifest's: by size, or by hash where no receipt proves them."""
        receipts, states = self._survey(part, entries)
        known = [entry for entry in entries if entry.path in states and not proven(entry, receipts, states)]
        wrong = [entry.path for entry in known if states[entry.path][0] != entry.size_bytes]
        unproven = [entry for entry in known if states[entry.path][0] == entry.size_bytes]
        self._remove(part, wrong)
        self._prove(part, unproven)

    def _remove(self, part: str, paths: Sequence[str]) -> None:
        for group in _commands(paths):
            self._shell.check(f"cd {quoted(part)} && rm -f {group}")

    def _prove(self, part: str, entries: Sequence[BundleFile]) -> list[BundleFile]:
        """Have the phone hash files, write receipts for the right ones, remove the wrong ones and return these."""
        wrong = []
        for group in _groups(entries):
            paths = quoted(*(f"./{entry.path}" for entry in group))
            said = self._shell.run(f"cd {quoted(part)} && sha256sum {paths}", _patience_s(_size(group))).text
            hashes = read_hashes(said)
            right = [entry for entry in group if hashes.get(entry.path) == entry.sha256]
            wrong += [entry for entry in group if entry not in right]
            self._write_receipts(part, right)
        self._remove(part, [entry.path for entry in wrong])
        return wrong

    def _write_receipts(self, part: str, entries: Sequence[BundleFile]) -> None:
        states = self._states(part, entries)
        # What is not as we sent it has a time of its own; a phone that cannot set one keeps that.
        if late := [entry for entry in entries if states.get(entry.path, (0, 0))[1] != time_of(entry)]:
            touches = "; ".join(f"touch -d @{time_of(entry)} {quoted(f'./{entry.path}')}" for entry in late)
            self._shell.run(f"cd {quoted(part)} && {{ {touches}; }}")
            states = self._states(part, entries)
        known = {entry.path: Receipt(entry.sha256, *states[entry.path]) for entry in entries if entry.path in states}
        if known:
            lines = "\n".join(line_of(path, receipt) for path, receipt in known.items())
            self._shell.check(f"cd {quoted(part)} && echo {quoted(lines)} >>{RECEIPTS}")

    def _states(self, part: str, entries: Sequence[BundleFile]) -> dict[str, tuple[int, int]]:
        return self._survey(part, entries)[1] if entries else {}

    def _lacking(self, part: str, entries: Sequence[BundleFile]) -> list[BundleFile]:
        receipts, states = self._survey(part, entries)
        return [entry for entry in entries if not proven(entry, receipts, states)]

    def _reuse(self, part: str, lacking: Sequence[BundleFile]) -> tuple[str, ...]:
        """Take files with the same content from other bundles on the phone: linked, or else copied and hashed."""
        found = self._elsewhere()
        taken = [entry for entry in lacking if entry.sha256 in found]
        copied = []
        for entry in taken:
            said = self._shell.run(copy(part, entry, *found[entry.sha256]), _patience_s(entry.size_bytes))
            if said.code == 0 and "linked" not in said.text:
                copied.append(entry)
        self._prove(part, copied)
        return tuple(entry.path for entry in taken)

    def _elsewhere(self) -> dict[str, tuple[str, Receipt]]:
        """Return where each known content lies, by its hash."""
        said = self._shell.run(
            f'cd {quoted(self._folder)} && for d in *; do echo "in $d"; cat $d/{RECEIPTS} 2>/dev/null; echo; done'
        ).text
        found, folder = {}, ""
        for line in said.splitlines():
            if line.startswith("in "):
                folder = line.removeprefix("in ")
            for path, receipt in read_receipts(line).items():
                found[receipt.sha256] = (f"{self._folder}/{folder}/{path}", receipt)
        return found

    def _check_space(self, lacking: Sequence[BundleFile]) -> None:
        needed = _size(lacking)
        if not needed:
            return
        systems = read_file_systems(self._shell.run(f"{FREE_SPACE} {quoted(self._folder)}").text)
        if isinstance(systems, Unavailable):
            return  # the phone's own “No space left” will tell
        free = systems[0].free_bytes
        if free < needed + self._margin_bytes:
            raise DeviceError(
                f"the phone has {format_bytes(free)} free, and the bundle needs {format_bytes(needed)} more and"
                f" {format_bytes(self._margin_bytes)} to spare",
                hint=f"Delete files or apps on it, or all bundles: adb shell rm -rf {self._folder}",
            )

    def _send(self, source: Path, part: str, lacking: Sequence[BundleFile], progress: Progress | None) -> None:
        total, done = _size(lacking), 0
        for group in _groups(lacking):
            self._files.push_staged(self._outgoing(source, part, group, progress, done, total))
            done += _size(group)
            if wrong := self._prove(part, group):  # once more: a bad cable or card may do better
                self._files.push_staged(self._outgoing(source, part, wrong, None, 0, 0))
                if still := self._prove(part, wrong):
                    raise self._mismatch(source, still[0])

    def _outgoing(
        self, source: Path, part: str, entries: Sequence[BundleFile], progress: Progress | None, done: int, total: int
    ) -> Iterator[Outgoing]:
        for entry in entries:
            told = _shifted(progress, done, total, entry.path)
            done += entry.size_bytes
            yield Outgoing(inside(source, entry.path), f"{part}/{entry.path}", mtime_s=time_of(entry), progress=told)

    def _mismatch(self, source: Path, entry: BundleFile) -> Exception:
        if describe(source, entry.path) != entry:
            return InvalidRecord(
                f"{source / entry.path} is not the file its manifest names", hint="Export the bundle again."
            )
        return DeviceError(
            f"{entry.path} arrived damaged on the phone twice (its sha256 differs), and was removed",
            hint="Use another cable or port; if it stays so, the phone's storage is failing.",
        )

    def _complete(self, path: str, part: str, entries: Sequence[BundleFile]) -> None:
        """Flush the files, so that writing them does not disturb what is measured, and give the folder its name."""
        for group in _commands([entry.path for entry in entries]):
            self._shell.check(f"cd {quoted(part)} && {{ fsync {group} 2>/dev/null || sync; }}", 300)
        self._shell.check(f"mv {quoted(part, path)}")


def _entries(source: Path, bundle: Bundle) -> tuple[BundleFile, ...]:
    """Return all files to bring: those of the manifest, and itself last."""
    for entry in bundle.files:
        if not entry.path.isprintable():
            raise InvalidRecord(f"{source}: the name {entry.path!r} holds characters that a phone's shell cannot list")
    return (*bundle.files, describe(source, MANIFEST))


def _groups(entries: Iterable[BundleFile]) -> Iterator[list[BundleFile]]:
    """Group files that are hashed by one command."""
    group: list[BundleFile] = []
    size = spelled = 0
    for entry in entries:
        size, spelled = size + entry.size_bytes, spelled + _RECEIPT_BYTES + _spelled(entry.path)
        if group and (size > _GROUP_BYTES or spelled > _COMMAND_BYTES or len(group) == 50):
            yield group
            group, size, spelled = [], entry.size_bytes, _RECEIPT_BYTES + _spelled(entry.path)
        group.append(entry)
    if group:
        yield group


def _commands(paths: Iterable[str]) -> Iterator[str]:
    """Yield quoted paths, as many as one command may hold."""
    line = ""
    for path in paths:
        word = quoted(f"./{path}")
        if line and len(line.encode()) + len(word.encode()) > _COMMAND_BYTES:
            yield line
            line = ""
        line += f" {word}"
    if line:
        yield line


def _spelled(path: str) -> int:
    """Return the bytes that a path takes in a command: quotes in it take more than one."""
    return len(quoted(f"./{path}").encode())


def _size(entries: Iterable[BundleFile]) -> int:
    return sum(entry.size_bytes for entry in entries)


def _patience_s(size: int) -> float:
    return 30 + size / _SLOWEST_BYTES_A_SECOND


def _shifted(progress: Progress | None, done: int, total: int, path: str) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda sent, _: progress(done + sent, total, path)
