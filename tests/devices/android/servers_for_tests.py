"""Adb servers for tests: a free port and an environment of its own for a real one, and scripted ones that misbehave."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from profiler.devices.android.adb import Server
from profiler.devices.android.server_address import Address, find_adb

ADB = find_adb({}) or ""


def free_port() -> int:
    """Return a port that nothing listens on at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def hermetic(home: Path, port: int) -> dict[str, str]:
    """Return an environment in which adb sees no phone but those it is told of, and no other server."""
    quiet = {"ADB_LIBUSB": "0", "ADB_MDNS": "0", "ADB_MDNS_OPENSCREEN": "0", "ADB_LOCAL_TRANSPORT_MAX_PORT": "5553"}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "ANDROID_ADB_SERVER_PORT": str(port), **quiet}


def end_server(server: Server) -> None:
    """End a server that a test started, as another tool would."""
    subprocess.run([ADB, "-P", str(server.address.port), "kill-server"], capture_output=True, check=False)


@contextlib.contextmanager
def scripted_server(replies: Sequence[bytes]) -> Iterator[Address]:
    """Listen as a server that answers one request on each connection: nth connection, nth reply; then it hangs up.

    A reply of `b"..."` keeps the connection open and says nothing.
    """
    held = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for reply in replies:
                connection, _ = listener.accept()
                connection.recv(1 << 16)
                if reply == b"...":
                    held.append(connection)
                    continue
                connection.sendall(reply)
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield Address("127.0.0.1", listener.getsockname()[1])
        finally:
            for connection in held:
                connection.close()
