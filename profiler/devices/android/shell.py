"""Commands on a phone: standard output, standard error and exit code apart, with a deadline and a limit."""

from __future__ import annotations

import secrets
import shlex
import threading
from collections.abc import Sequence
from pathlib import Path

from profiler.clock import Clock, Deadline, RealClock
from profiler.devices.android.adb import Transport
from profiler.devices.android.shell_protocol import (
    CLOSE_STDIN,
    KeptShell,
    Output,
    Packets,
    Run,
    fed,
    packet,
    run_v1,
    short,
)
from profiler.errors import DeviceError, InputError

__all__ = ["Output", "Shell", "quoted"]

_DEADLINE_S = 20.0
_LIMIT_BYTES = 16 << 20
# A shell reads commands from a socket byte by byte; longer ones are better off with a connection of their own.
_LONGEST_KEPT_BYTES = 8192


def quoted(*words: str) -> str:
    """Return words as one line that a shell reads as just these."""
    return shlex.join(words)


class Shell:
    """Commands on one phone. One connection is kept for short ones, which saves nearly all of a command's time.

    A command runs in a subshell with empty standard input: what it sets, or that it exits, does not touch the next.
    Processes that it leaves in the background must not print. May be used from several threads.
    """

    def __init__(self, transport: Transport, clock: Clock | None = None) -> None:
        self._transport = transport
        self._clock = clock or RealClock()
        self._busy = threading.Lock()
        self._kept: KeptShell | None = None
        self._speaks_v2: bool | None = None

    @property
    def serial(self) -> str:
        """Return what the server lists the phone under."""
        return self._transport.serial

    def run(self, command: str, deadline_s: float = _DEADLINE_S, limit_bytes: int = _LIMIT_BYTES) -> Output:
        """Run a command. Raises DeviceError: no answer by the deadline, more output than the limit, phone gone."""
        run = Run(self._transport.serial, command, deadline_s, limit_bytes, Deadline(deadline_s, self._clock))
        if not self._v2():
            return run_v1(self._transport, run)
        if len(command) > _LONGEST_KEPT_BYTES or not self._busy.acquire(blocking=False):
            return self.once(command, deadline_s, limit_bytes)
        try:
            return self._run_kept(run)
        finally:
            self._busy.release()

    def once(self, command: str, deadline_s: float = _DEADLINE_S, limit_bytes: int = _LIMIT_BYTES) -> Output:
        """Run a command over a connection of its own. Raises as `run` does."""
        run = Run(self._transport.serial, command, deadline_s, limit_bytes, Deadline(deadline_s, self._clock))
        if not self._v2():
            return run_v1(self._transport, run)
        with self._transport.open(f"shell,v2,raw:{command or ':'}", deadline_s) as connection:
            connection.sendall(packet(CLOSE_STDIN))
            packets = Packets(connection, run)
            while packets.code is None:
                packets.read()
            return Output(bytes(packets.stdout), bytes(packets.stderr), packets.code)

    def check(self, command: str, deadline_s: float = _DEADLINE_S, limit_bytes: int = _LIMIT_BYTES) -> str:
        """Run a command that has to end well, and return what it printed. Raises DeviceError."""
        output = self.run(command, deadline_s, limit_bytes)
        if output.code != 0:
            raise DeviceError(f"{self._transport.serial}: {short(command)} failed: {output.complaint}")
        return output.text

    def batch(self, commands: Sequence[str], deadline_s: float = _DEADLINE_S) -> tuple[Output, ...]:
        """Run commands one after the other in one round trip; what each complains about is among what it prints."""
        mark = secrets.token_hex(8)
        script = ";".join(f"(eval {quoted(command)})2>&1;echo {mark} $?" for command in commands)
        said = self.run(script, deadline_s).stdout.split(mark.encode())
        # Behind each mark stands the code of the command before it, and on the next line the next one's output.
        codes = [part.split(b"\n", 1) for part in said[1:]]
        bodies = [said[0], *(rest for _, rest in codes)]
        return tuple(Output(body, b"", int(code)) for body, (code, _) in zip(bodies, codes, strict=False))

    def feed(self, command: str, source: Path, deadline_s: float) -> bytes:
        """Run a command with a file as its standard input, and return all that it printed.

        Raises InputError where the file cannot be read, else as `run` does.
        """
        run = Run(self._transport.serial, command, deadline_s, _LIMIT_BYTES, Deadline(deadline_s, self._clock))
        with self._transport.open(f"exec:{command} 2>&1", deadline_s) as connection:
            try:
                with source.open("rb") as stream:
                    return fed(connection, stream, run)
            except OSError as error:
                raise InputError(f"cannot read {source}: {error.strerror or error}") from error

    def close(self) -> None:
        """Give the kept connection up; the next command opens another."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _v2(self) -> bool:
        if self._speaks_v2 is None:
            self._speaks_v2 = "shell_v2" in self._transport.features()
        return self._speaks_v2

    def _run_kept(self, run: Run) -> Output:
        if self._kept is not None and self._kept.stirred():
            self.close()
        if self._kept is None:
            self._kept = KeptShell(self._transport, run.deadline_s)
        try:
            output = self._kept.run(run)
        except BaseException:  # an interrupted command would answer the next one
            self.close()
            raise
        return output
