"""How `profile` says that it failed: in words on stderr and, with --json, as one object on stdout."""

from __future__ import annotations

import re
import sys
import traceback
from typing import NamedTuple

from profiler.errors import ProfilerError

USAGE, INTERNAL = 2, 4


class Failure(NamedTuple):
    """What went wrong; `kind` is a word for programs, and `said` tells that stderr has it already."""

    exit_code: int
    kind: str
    message: str
    hint: str | None = None
    said: bool = False


def failure_of(error: ProfilerError) -> Failure:
    """Describe an error of ours; its kind is its class, `unknown_name` for UnknownName."""
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
    message = Exception.__str__(error)
    return Failure(error.exit_code, kind.removesuffix("_error"), message, error.hint)


def bug(error: BaseException) -> Failure:
    """Show where a bug is, and describe it."""
    try:
        traceback.print_exception(error)
        print("profile: this is a bug in the profiler; please report it with the lines above", file=sys.stderr)
    except OSError:
        pass  # nobody reads it
    return Failure(INTERNAL, "internal", f"{type(error).__name__}: {error}", said=True)


def tell(failure: Failure, *, as_json: bool) -> None:
    """Say it; an output that is gone, as a closed terminal's, is no further error."""
    lines = failure.message if failure.hint is None else f"{failure.message}\n  {failure.hint}"
    try:
        if not failure.said:
            print(f"profile: {lines}", file=sys.stderr, flush=True)
    except OSError:
        pass
    if as_json:
        from profiler.cli.output import print_json

        facts = {name: getattr(failure, name) for name in ("kind", "message", "hint", "exit_code")}
        print_json({"error": facts})
