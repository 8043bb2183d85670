"""What a command of the phone answers."""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    """What a command printed, and how it ended."""

    stdout: bytes = b""
    stderr: bytes = b""
    code: int = 0


def said(text: str, code: int = 0) -> Answer:
    """Answer with text on stdout; a line end is added where the last one lacks it."""
    return Answer(_lines(text), b"", code)


def complained(text: str, code: int) -> Answer:
    """Answer with text on stderr."""
    return Answer(b"", _lines(text), code)


def _lines(text: str) -> bytes:
    return (text if not text or text.endswith("\n") else f"{text}\n").encode()
