"""Answers to the phone's programs that are scripts: one connection a command, on a unix socket below `/.sim`."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from tests.phones.android.commands_answer import Answer

FOLDER = ".sim"
SOCKET = "ask"
_NOTES_KEPT = 64

# The count goes first, so that an empty argument is one. Errors and the exit code cannot go through the one pipe of
# `nc`: they wait in a note when the connection ends; most answers need none. Standard input is sent on only where its
# size is said, as a streamed package's is: it is as a rule a connection that stays open.
SCRIPT = r"""#!{shell}
size=
for word; do [[ $previous = -S ]] && size=$word; previous=$word; done
{{
  print -n "$$\0000$#\0000${{0##*/}}\0000"
  for word; do print -nr -- "$word"; print -n '\0000'; done
  [[ -n $size ]] && {toybox} head -c "$size"
}} | {toybox} nc -U {folder}/ask
[[ -e {folder}/$$ ]] && . {folder}/$$
exit 0
"""


Ask = Callable[[Sequence[str], BinaryIO], Answer]
"""Answer a command; what it is given on standard input is read from the second argument."""


class AskServer:
    """Answer the scripts until closed; `seen_as` is what the scripts call the folder of the socket."""

    def __init__(self, root: Path, seen_as: str, ask: Ask) -> None:
        self._folder = root / FOLDER
        self._seen_as = seen_as
        self._ask = ask
        self._notes: list[Path] = []
        self._listener = _listen_in(self._folder, SOCKET)
        self._lock = threading.Lock()

    def start(self) -> None:
        """Serve from now on."""
        threading.Thread(target=self._accept, name="phone-commands", daemon=True).start()

    def close(self) -> None:
        """Stop answering."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # nobody waits in accept
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="phone-command", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            pid = _word(incoming)
            count = _word(incoming)
            if not pid or not count:
                return  # the command was interrupted
            argv = [os.fsdecode(_word(incoming)) for _ in range(int(count) + 1)]
            answer = self._ask(argv, incoming)
            self._leave(self._folder / pid.decode(), answer)
            try:
                connection.sendall(answer.stdout)
            except OSError:
                pass  # `dumpsys … | head -1` does not read to the end

    def _leave(self, note: Path, answer: Answer) -> None:
        note.unlink(missing_ok=True)  # of a process that had the same number before
        if not answer.stderr and not answer.code:
            return
        errors = note.with_suffix(".err")
        errors.write_bytes(answer.stderr)
        note.write_text(f"cat {self._seen_as}/{errors.name} >&2; exit {int(answer.code)}\n")
        with self._lock:
            self._notes += [note, errors]
            old, self._notes = self._notes[:-_NOTES_KEPT], self._notes[-_NOTES_KEPT:]
        for path in old:
            path.unlink(missing_ok=True)


def _word(incoming: BinaryIO) -> bytes:
    """Read up to a NUL; such words are short, so that reading byte by byte from the buffer will do."""
    word = bytearray()
    while (byte := incoming.read(1)) not in (b"", b"\0"):
        word += byte
    return bytes(word)


def _listen_in(folder: Path, name: str) -> socket.socket:
    """Listen on a unix socket whose own path may be longer than the 107 bytes that an address takes."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        listener.bind(f"/proc/self/fd/{descriptor}/{name}")
    finally:
        os.close(descriptor)
    (folder / name).chmod(0o666)
    listener.listen(64)
    return listener
