"""What proves that a file on a phone is the one a bundle names: the phone hashed it, and it did not change since.

A receipt is a line `sha256 bytes seconds ./path` in a file beside what it is about; `seconds` is the modification time.
"""

from __future__ import annotations

from typing import NamedTuple

from profiler.devices.android.shell import quoted
from profiler.records.bundle import BundleFile

RECEIPTS = ".receipts"
_LONG_AGO_S = 946_684_800  # 2000-01-01; times go up to 2008


class Receipt(NamedTuple):
    """What is known of a file on the phone."""

    sha256: str
    size_bytes: int
    mtime_s: int


def proven(entry: BundleFile, receipts: dict[str, Receipt], states: dict[str, tuple[int, int]]) -> bool:
    """Tell whether a receipt says that a file is the right one, and size and time say that it still is."""
    receipt = receipts.get(entry.path)
    return (
        receipt is not None
        and receipt.sha256 == entry.sha256
        and states.get(entry.path) == (entry.size_bytes, receipt.mtime_s)
        and receipt.size_bytes == entry.size_bytes
    )


def read_receipts(text: str) -> dict[str, Receipt]:
    """Read `sha256 bytes seconds ./path` lines; the last about a path counts, and a torn one does not."""
    found = {}
    for line in text.splitlines():
        words = line.split(" ", 3)
        if len(words) == 4 and len(words[0]) == 64 and words[1].isdigit() and words[2].isdigit():
            found[words[3].removeprefix("./")] = Receipt(words[0], int(words[1]), int(words[2]))
    return found


def read_states(text: str) -> dict[str, tuple[int, int]]:
    """Read `is bytes seconds ./path` lines."""
    found = {}
    for line in text.splitlines():
        words = line.split(" ", 3)
        if len(words) == 4 and words[0] == "is" and words[1].isdigit() and words[2].lstrip("-").isdigit():
            found[words[3].removeprefix("./")] = (int(words[1]), int(words[2]))
    return found


def time_of(entry: BundleFile) -> int:
    """Return the modification time that a file gets on the phone, in seconds: long ago, so that any later write shows.

    Its own would not do: a file that is sent in the second in which it was made has the time of a write in that second.
    """
    return _LONG_AGO_S + int(entry.sha256[:7], 16)


def read_hashes(text: str) -> dict[str, str]:
    """Read what `sha256sum` prints: `sha256  ./path` lines."""
    return {line[66:].removeprefix("./"): line[:64] for line in text.splitlines() if line[64:66] == "  "}


def line_of(path: str, receipt: Receipt) -> str:
    """Return a receipt as a line."""
    return f"{receipt.sha256} {receipt.size_bytes} {receipt.mtime_s} ./{path}"


def copy(part: str, entry: BundleFile, path: str, receipt: Receipt) -> str:
    """Return the script that takes a file from elsewhere on the phone, where its receipt still holds.

    It says `linked`, and a receipt is written: that is the same file. Most phones forbid links; then it is a copy,
    which the phone has to hash.
    """
    target = f"{part}/{entry.path}"
    parent, known = target.rpartition("/")[0], f"{receipt.size_bytes} {receipt.mtime_s}"
    line = f"echo {quoted(line_of(entry.path, receipt))} >>{quoted(f'{part}/{RECEIPTS}')}"
    return (
        f'[ "$(stat -c "%s %Y" {quoted(path)})" = "{known}" ] && umask 022 && mkdir -p {quoted(parent)} &&'
        f" {{ ln {quoted(path, target)} 2>/dev/null && {line} && echo linked || cp {quoted(path, target)}"
        f" || {{ rm -f {quoted(target)}; false; }}; }}"
    )
