"""Try the product without a phone: `python -m tests.phones.android --persona pixel9`."""

from __future__ import annotations

import argparse
import io
import select
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.phones.adb_server import BUNDLED_ADB
from tests.phones.android import userland
from tests.phones.android.adbd import Trust
from tests.phones.android.apps import KOTLIN_JAR, RUNNERS
from tests.phones.android.console import help_text, obey, state_of
from tests.phones.android.phone import VirtualAndroid
from tests.phones.personas import persona_names

_STATE_EVERY_S = 1.0
_PROFILES = Path(__file__).parents[3] / "device_profiles"
_LEARN = f"""\
The phone listens on 127.0.0.1. Any adb may connect to it; `profile` then treats it as a phone that says that it is
virtual. It lasts until you type quit, press Ctrl-D or Ctrl-C. Other words that may be typed:

{help_text()}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Hold a phone until its person quits; return the exit code."""
    options = _parser().parse_args(arguments)
    if complaint := _missing(options.runner):
        print(complaint, file=sys.stderr)
        return 2
    if options.runner == "python" and options.speed != 1.0:
        print("--speed needs --runner kotlin: the python runner computes on this machine's clock", file=sys.stderr)
        return 2
    trust = Trust.ASKS if options.ask else Trust.OPEN
    try:
        with VirtualAndroid(
            options.persona,
            runner=options.runner,
            speed=options.speed,
            seed=options.seed,
            port=options.port,
            trust=trust,
        ) as phone:
            print(_introduction(phone), flush=True)
            _hold(phone)
    except OSError as error:
        print(f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}; choose another --port", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.phones.android",
        description="A virtual Android phone that real adb connects to.",
        epilog=_LEARN,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--persona", choices=persona_names(), default="pixel9", help="which phone (pixel9)")
    parser.add_argument(
        "--runner",
        choices=sorted(RUNNERS),
        default="python",
        help="what the runner app is: python computes for real, on this machine; kotlin only models the work, on the "
        "phone's own clock (python)",
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on (a free one)")
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        help="how much faster than real its clock runs, with --runner kotlin only (1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the noise in its gauges (0)")
    parser.add_argument("--ask", action="store_true", help="be unauthorized until you type authorize")
    return parser


def _missing(runner: str) -> str:
    if packages := userland.needs():
        return f"the phone's shell is made of Debian's {' and '.join(packages)}: apt-get install {' '.join(packages)}"
    if runner == "kotlin" and not KOTLIN_JAR.exists():
        return f"{KOTLIN_JAR} is missing: run make android-jars, or use --runner python"
    return ""


def _introduction(phone: VirtualAndroid) -> str:
    persona = phone.model.persona
    device = persona.name if (_PROFILES / f"{persona.name}.toml").exists() else "android"
    adb = "adb" if shutil.which("adb") else str(BUNDLED_ADB)
    return (
        f"{persona.title}\n"
        f"serial {phone.serial}, at {phone.address}; its files are below {phone.root}\n\n"
        f"In another terminal:\n"
        f"  profile devices --connect {phone.address}\n"
        f"  profile --device {device} --model nano\n"
        f"  {adb} disconnect {phone.address}    when you are done\n\n"
        f"Here: help for what may happen to the phone, quit to end it.\n"
    )


def _hold(phone: VirtualAndroid) -> None:
    live = sys.stdout.isatty()
    typed = io.FileIO(sys.stdin.fileno(), closefd=False)  # a buffer would hide lines from select
    _say(state_of(phone), live=live)
    while True:
        if not select.select([typed], [], [], _STATE_EVERY_S)[0]:
            if live:
                _redraw(state_of(phone))
            continue
        line = typed.readline()
        said = obey(phone, line.decode(errors="replace")) if line else None
        if said is None:
            return
        _say(said, live=live)


def _say(text: str, *, live: bool) -> None:
    if not live:
        print(text, flush=True)
        return
    # The last line is the one that is drawn anew: it must not take two.
    *lines, last = text.splitlines()
    print(*lines, _cut(last), "> ", sep="\n", end="", flush=True)


def _cut(line: str) -> str:
    return line[: shutil.get_terminal_size().columns - 1]


def _redraw(state: str) -> None:
    """Write the line above the one that is typed on, and go back to where the cursor was."""
    sys.stdout.write(f"\x1b7\x1b[1A\r\x1b[K{_cut(state)}\x1b8")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
