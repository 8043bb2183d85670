"""The command line: declare, call, render."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from profiler.errors import ProfilerError

INTERRUPTED = 130
INTERNAL = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `profile` and return its exit code: 0 fine, 1 the model's fault, 2 usage or input, 3 device, 4 internal."""
    from profiler.cli.app import app

    try:
        code = app(args=list(arguments) if arguments is not None else None, standalone_mode=False)
    except ProfilerError as error:
        print(f"profile: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("profile: stopped; what was measured is kept (profile runs)", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away, as `profile runs | head` does
        return 0
    except Exception as error:  # noqa: BLE001 - the process edge
        return _foreign(error)
    return code if isinstance(code, int) else 0


def _foreign(error: Exception) -> int:
    """Show what the argument parser refuses as its own messages, and anything else as a bug."""
    show = getattr(error, "show", None)
    if show is not None:
        show()
        return int(getattr(error, "exit_code", 2))
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    import traceback

    traceback.print_exception(error)
    print("profile: this is a bug in the profiler; please report it with the lines above", file=sys.stderr)
    return INTERNAL
