"""Some app in the runner's place: `python -m tests.devices.android.other_app STORAGE REPLY…`."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from profiler.runner.__main__ import announce


def main(storage: str, *replies: str) -> None:
    """Answer each line of one host with the next reply, and then nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        announce(Path(storage), listener.getsockname()[1])
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as lines:
            for reply, _ in zip(replies, lines, strict=False):
                connection.sendall(reply.encode() + b"\n")
            lines.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
