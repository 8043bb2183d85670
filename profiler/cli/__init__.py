"""The command line: declare, call, render."""

from __future__ import annotations

import errno
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from profiler.cli.failing import INTERNAL, USAGE, Failure, bug, failure_of, tell
from profiler.cli.stopping import INTERRUPTED, QuitNow, Signals
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.clock import Clock
    from profiler.devices.device import Device


def main(arguments: Sequence[str] | None = None, *, open_device: Callable[[str, Clock], Device] | None = None) -> int:
    """Run `profile` and return its exit code: 0 fine, 1 the model's fault, 2 usage or input, 3 device, 4 internal.

    A signal ends it with 128 and the signal's number: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP.
    `open_device` opens by its name what is measured on, in the place of the product's own devices.
    """
    try:
        return _main(arguments, open_device)
    except KeyboardInterrupt:  # so early or so late that nothing is under way
        return _finish(_stopped(()), as_json=False)
    finally:
        _let_go_of_stderr()


def _let_go_of_stderr() -> None:
    """Flush stderr, or give it up where nobody reads it: the interpreter's own end would make that its exit code."""
    try:
        sys.stderr.flush()
    except OSError:
        _nowhere(sys.stderr)


def _nowhere(stream: TextIO) -> None:
    """Lead a stream that cannot be written to nothing; what is still buffered must not come up again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _main(arguments: Sequence[str] | None, open_device: Callable[[str, Clock], Device] | None) -> int:
    with Signals() as signals:
        _open_output()
        given = list(sys.argv[1:] if arguments is None else arguments)
        end = _run(given, open_device)
    if isinstance(end, Failure) and signals.received:
        end = end._replace(exit_code=128 + signals.received[-1])
    return _finish(end, as_json="--json" in given)


def _finish(end: int | Failure, *, as_json: bool) -> int:
    """Say what failed, get the output out, and return the exit code."""
    code = end.exit_code if isinstance(end, Failure) else end
    try:
        if isinstance(end, Failure):
            tell(end, as_json=as_json)
        sys.stdout.flush()
    except OSError as error:
        return _lost_output(error, code)
    return code


def _run(given: list[str], open_device: Callable[[str, Clock], Device] | None) -> int | Failure:
    """Return the exit code of what went its way, or how it failed."""
    try:
        from profiler.cli.app import app

        code = app(args=given, prog_name="profile", standalone_mode=False, obj=open_device)
    except ProfilerError as error:
        return failure_of(error)
    except KeyboardInterrupt:
        return _stopped(given)
    except QuitNow:
        return _stopped(given, "stopped at once", "the next profile command collects what was measured")
    except SystemExit as leaving:
        # So end typer and rich where the reader of our output went away, as `profile runs | head` does.
        gone = leaving.__context__
        return _lost_output(gone, 0) if isinstance(gone, BrokenPipeError) else INTERNAL
    except Exception as error:  # noqa: BLE001 - the process edge
        return _foreign(error, given)
    if code == INTERRUPTED:  # so typer returns from Ctrl-C
        return _stopped(given)
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
    """Give up stdout, which cannot be written: quietly where its reader went away, with a word where a disk is full."""
    _nowhere(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return code
    print(f"profile: the disk that output or temporary files go to is full: {error}", file=sys.stderr)
    return USAGE


def _stopped(
    given: Sequence[str], how: str = "stopped", kept: str = "what was measured is kept (profile runs)"
) -> Failure:
    """Describe a Ctrl-C; only the main job, whose options stand before any command, measures what could be kept."""
    measures = bool(given) and given[0].startswith("-")
    on_phone = "; a phone that was away goes on by itself: profile collect" if _names_a_phone(given) else ""
    return Failure(INTERRUPTED, "interrupted", f"{how}; {kept}{on_phone}" if measures else how)


def _names_a_phone(given: Sequence[str]) -> bool:
    named = [after for option, after in itertools.pairwise(given) if option == "--device"]
    named += [word.partition("=")[2] for word in given if word.startswith("--device=")]
    return bool(named) and named[-1] != "local"


def _foreign(error: Exception, given: Sequence[str]) -> int | Failure:
    """Show what the argument parser refuses as its own messages, and anything else as a bug."""
    show = getattr(error, "show", None)
    if show is not None:
        error.__dict__["message"] = str(getattr(error, "message", "")).removeprefix("Value error, ")
        show()
        message = getattr(error, "format_message", error.__str__)()
        return Failure(int(getattr(error, "exit_code", USAGE)), "usage", message, said=True)
    if type(error).__name__ == "Abort":  # typer's word for Ctrl-C
        return _stopped(given)
    if isinstance(error, BrokenPipeError) or getattr(error, "errno", None) == errno.ENOSPC:
        return _lost_output(error, 0)
    return bug(error)
