"""The shell services of adbd: `shell:` in its first and second version, and `exec:`."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.phones.android.streams import Stream, StreamClosed
from tests.phones.android.userland import Userland

FRAME = struct.Struct("<BI")
STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN, WINDOW_SIZE = range(6)
_PIECE_BYTES = 64 * 1024


class Request(NamedTuple):
    """What a host asks for: `command` is empty for an interactive shell."""

    command: str
    framed: bool
    terminal: bool


def parse(service: str) -> Request:
    """Read `shell:ls`, `shell,v2,TERM=xterm,raw:ls` or `exec:ls`."""
    head, _, command = service.partition(":")
    name, *options = head.split(",")
    interactive = not command and name == "shell"
    return Request(command, "v2" in options, "pty" in options or (interactive and "raw" not in options))


class ShellService:
    """Run one command and join it to a stream."""

    def __init__(self, stream: Stream, request: Request, userland: Userland) -> None:
        self._stream = stream
        self._request = request
        self._userland = userland

    def run(self) -> None:
        """Run the command to its end; if the host hangs up before, its process group gets SIGHUP, as of a terminal."""
        argv, environment, folder = (
            self._userland.argv(self._request.command),
            self._userland.environment(),
            self._userland.root,
        )
        if self._request.terminal:
            self._run_on_terminal(argv, environment, folder)
            return
        apart = subprocess.PIPE if self._request.framed else subprocess.STDOUT
        process = subprocess.Popen(
            argv, env=environment, cwd=folder, bufsize=0, start_new_session=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=apart,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        kinds = {process.stdout.fileno(): STDOUT}
        if process.stderr is not None:
            kinds[process.stderr.fileno()] = STDERR
        with process:
            self._join(process, process.stdin.fileno(), kinds)

    def _run_on_terminal(self, argv: Sequence[str], environment: dict[str, str], folder: Path) -> None:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["/usr/bin/setsid", "--ctty", *argv],
            env=environment,
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        with process:
            self._join(process, ours, {ours: STDOUT})

    def _join(self, process: subprocess.Popen[bytes], stdin: int, kinds: dict[int, int]) -> None:
        feeder = threading.Thread(target=self._feed, args=(process, os.dup(stdin)), name="adbd-stdin", daemon=True)
        feeder.start()
        self._userland.started.add(process.pid)
        if not self._request.terminal:
            assert process.stdin is not None
            process.stdin.close()
        try:
            self._copy_out(kinds)
            code = process.wait()
        except StreamClosed:
            _hang_up(process)
            raise
        finally:
            self._userland.started.discard(process.pid)
            if self._request.terminal:
                os.close(stdin)
        if self._request.framed:
            self._stream.write(FRAME.pack(EXIT, 1) + bytes([code if code >= 0 else 128 - code]))

    def _copy_out(self, kinds: dict[int, int]) -> None:
        poll = select.poll()
        for descriptor in kinds:
            poll.register(descriptor, select.POLLIN)
        left = {descriptor: self._userland.printing() for descriptor in kinds}
        while left:
            for descriptor, _ in poll.poll():
                read = _read(descriptor)
                data = left[descriptor](read)
                if data:
                    self._put(kinds[descriptor], data)
                if not read:
                    poll.unregister(descriptor)
                    del left[descriptor]

    def _put(self, kind: int, data: bytes) -> None:
        self._stream.write(FRAME.pack(kind, len(data)) + data if self._request.framed else data)

    def _feed(self, process: subprocess.Popen[bytes], stdin: int) -> None:
        try:
            if self._request.framed:
                self._feed_frames(stdin)
            else:
                self._feed_all(stdin)
        except (StreamClosed, OSError):
            pass  # either end has gone; the other half of the service sees it
        finally:
            os.close(stdin)
        self._stream.await_closed()
        if process.poll() is None:
            _hang_up(process)

    def _feed_frames(self, stdin: int) -> None:
        while True:
            kind, length = FRAME.unpack(self._stream.receive_exactly(FRAME.size))
            data = self._stream.receive_exactly(length)
            if kind == STDIN:
                _write_all(stdin, self._given(data))
            elif kind == CLOSE_STDIN:
                return

    def _feed_all(self, stdin: int) -> None:
        while piece := self._stream.receive():
            _write_all(stdin, self._given(bytes(piece)))

    def _given(self, data: bytes) -> bytes:
        return data if self._request.command else self._userland.given(data)


def _hang_up(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGHUP)
    except ProcessLookupError:
        pass  # it has ended


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIECE_BYTES)
    except OSError:
        return b""  # a terminal whose last process is gone


def _write_all(descriptor: int, data: bytes | memoryview) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
