"""Every error a caller can see, split by what the caller can do about it.

ProfilerError
├── InputError            fix what you typed or passed            exit 2
│   ├── UnknownName       no such model, device, run …
│   ├── InvalidRecord     a file or message breaks its schema
│   ├── MissingSource     weights or a file that are not here
│   └── MissingExtra      an optional part that is not installed
├── ModelError            the model's own fault                   exit 1
│   └── BeyondTolerance   an export differs from its source too much
├── DeviceError           fix the device or its connection        exit 3
│   ├── RunnerLost        the runner died or went silent
│   └── ProtocolError     the runner said something it must not
└── InternalError         report a bug                            exit 4
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def first_line(error: BaseException) -> str:
    """Return the first line of what a foreign error says, or its kind where it says nothing."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


class ProfilerError(Exception):
    """Say what happened, where, and what to do next."""

    exit_code = 4

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message}\n  {self.hint}" if self.hint else message


class InputError(ProfilerError):
    """Something the user typed or passed cannot be used."""

    exit_code = 2


class UnknownName(InputError):
    """A name that is not in its closed list; says which names come close."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str | None = None) -> None:
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        advice = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(names) or 'none'}."
        super().__init__(f"unknown {kind} {name!r}", hint=" ".join(part for part in (advice, hint) if part))


class InvalidRecord(InputError):
    """A file or message does not follow its schema."""


class MissingSource(InputError):
    """Weights, an image or another file that must be here is not."""


class MissingExtra(InputError):
    """A part of the product that needs an optional set of packages."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs packages that are not installed",
            hint=f"Install them with: pip install 'ondevice-profiler[{extra}]'  (in a checkout: make install-{extra})",
        )


class ModelError(ProfilerError):
    """The model, not the device or the user, is at fault."""

    exit_code = 1


class BeyondTolerance(ModelError):
    """An exported bundle computes something else than its source."""


class DeviceError(ProfilerError):
    """The device or the way to it is not in order."""

    exit_code = 3


class RunnerLost(DeviceError):
    """The runner process died or stopped answering."""


class ProtocolError(DeviceError):
    """The runner and the host do not understand each other."""


class InternalError(ProfilerError):
    """A state that must not occur; a bug to report."""
