"""The command line: declare, call, render."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from profiler.errors import ProfilerError

INTERRUPTED = 130
INTERNAL = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `profile` and return its exit code: 0 fine, 1 the model's fault, 2 usage or input, 3 device, 4 internal."""
    _open_output()
    code = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _lost_output(error, code)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    from profiler.cli.app import app

    try:
        given = list(arguments) if arguments is not None else None
        code = app(args=given, prog_name="profile", standalone_mode=False)
    except ProfilerError as error:
        print(f"profile: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return _stopped()
    except SystemExit as leaving:
        # So end typer and rich where the reader of our output went away, as `profile runs | head` does.
        gone = leaving.__context__
        return _lost_output(gone, 0) if isinstance(gone, BrokenPipeError) else INTERNAL
    except Exception as error:  # noqa: BLE001 - the process edge
        return _foreign(error)
    if code == INTERRUPTED:  # so typer returns from Ctrl-C
        return _stopped()
    return code if isinstance(code, int) else 0


def _open_output() -> None:
    """Make sure that both streams are there, and that a sign stdout cannot show does not end the program."""
    if sys.stdout is None:  # started with stdout closed
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def _lost_output(error: BaseException, code: int) -> int:
    """Give up stdout, which cannot be written: quietly where its reader went away, with a word where a disk is full.

    What is still buffered must not come up again when the interpreter ends.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        return code
    print(f"profile: the disk that output or temporary files go to is full: {error}", file=sys.stderr)
    return 2


def _stopped() -> int:
    print("profile: stopped; what was measured is kept (profile runs)", file=sys.stderr)
    return INTERRUPTED


def _foreign(error: Exception) -> int:
    """Show what the argument parser refuses as its own messages, and anything else as a bug."""
    show = getattr(error, "show", None)
    if show is not None:
        show()
        return int(getattr(error, "exit_code", 2))
    if type(error).__name__ == "Abort":  # typer's word for Ctrl-C
        return _stopped()
    if isinstance(error, BrokenPipeError) or getattr(error, "errno", None) == errno.ENOSPC:
        return _lost_output(error, 0)
    import traceback

    traceback.print_exception(error)
    print("profile: this is a bug in the profiler; please report it with the lines above", file=sys.stderr)
    return INTERNAL
