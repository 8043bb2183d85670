"""What a reading is when it is not one: unavailable, or faked by somebody's override."""

from __future__ import annotations

from typing import NamedTuple

from profiler.errors import DeviceError


class Unavailable(NamedTuple):
    """A phone's answer that holds no reading; `raw` is the answer, to be kept beside the reason."""

    reason: str
    raw: str


class Faked(NamedTuple):
    """A reading that somebody overrode on the phone; nothing in `raw` may be used before `reset_command` was run."""

    what: str
    reset_command: str
    raw: str


def refusal_of(faked: Faked, who: str) -> DeviceError:
    """Return the error that refuses the phone `who`: somebody, or a test, froze a reading there."""
    return DeviceError(
        f"{faked.what} that {who} reports is faked, so nothing measured on it would be true",
        hint=f"Reset it with: {faked.reset_command}",
    )


def refused(text: str) -> str | None:
    """Return how a phone's tool refused to answer (no service, no permission, no such file); None where it did not."""
    for line in text.splitlines()[:_HEAD_LINES]:
        if any(sign in line for sign in _REFUSALS):
            return line.strip()
    return None


# A refusal stands at the top; further down the same words may be part of somebody's log.
_HEAD_LINES = 3
_REFUSALS = (
    "Can't find service",
    "Cannot find service",
    "Permission Denial",
    "Permission denied",
    "No such file or directory",
    "not found",
    "inaccessible or not found",
    "DUMP TIMEOUT",
    "Failure calling service",
    "Operation not permitted",
)
