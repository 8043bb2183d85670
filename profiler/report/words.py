"""Words of others, fit to be shown: as they are, but for signs that steer what shows them."""

from __future__ import annotations

from profiler.report.terminal import plain

# Overrides, embeddings and isolates turn the words around them too; right-to-left letters need none of them.
_DIRECTING = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def foreign(text: str) -> str:
    """Return words of others with a mark for each sign that steers a terminal, a page or the direction of text."""
    shown = plain(text).plain.encode("utf-8", "replace").decode()
    return "".join("�" if ord(sign) in _DIRECTING else sign for sign in shown)


def one_line(text: str, most: int) -> str:
    """Return words of others on one line, cut where they are long."""
    shown = " ".join(foreign(text).split())
    return shown if len(shown) <= most else shown[: most - 1] + "…"
