"""A real adb server of one's own: free port, own home, no look at USB, mDNS or emulators."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import adbutils

BUNDLED_ADB = Path(adbutils.__file__).parent / "binaries" / "adb"
"""adb 36, whatever is on the PATH."""


class Adb(NamedTuple):
    """An adb program and the environment in which it finds its server, and nothing else."""

    program: Path
    environment: Mapping[str, str]
    port: int

    def run(self, *arguments: str, serial: str = "", stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run the program with `arguments`, for one phone if `serial` is given; never raises for its exit code."""
        return subprocess.run(
            self._argv(arguments, serial), env=dict(self.environment), input=stdin, capture_output=True, check=False,
            timeout=60, stdin=subprocess.DEVNULL if stdin is None else None,
        )  # fmt: skip

    def start(self, *arguments: str, serial: str = "") -> subprocess.Popen[bytes]:
        """Start the program and leave it running, its output in pipes."""
        return subprocess.Popen(
            self._argv(arguments, serial), env=dict(self.environment), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _argv(self, arguments: tuple[str, ...], serial: str) -> list[str]:
        return [str(self.program), *(["-s", serial] if serial else []), *arguments]


def installed_adbs() -> dict[str, Path]:
    """Return the adb programs to test with by name: the bundled one, and Debian's where it is installed."""
    found = {"adb36": BUNDLED_ADB}
    if debian := shutil.which("adb", path="/usr/bin"):
        found["debian"] = Path(debian)
    return found


@contextmanager
def adb_server(home: Path, program: Path = BUNDLED_ADB, **more: str) -> Iterator[Adb]:
    """Start a server with `home` as its own home, and end it; `more` goes into its environment."""
    port = _free_port()
    adb = Adb(program, {**_bare_environment(home, port), **more}, port)
    server = subprocess.Popen(
        [str(program), "nodaemon", "server"], env=dict(adb.environment), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _await_listening(port, server)
        yield adb
    finally:
        server.terminate()
        server.wait(10)
        adb.run("kill-server")  # one that a command or the product started in its place, on our own port


def _bare_environment(home: Path, port: int) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "ANDROID_ADB_SERVER_PORT": str(port),
        "ADB_LIBUSB": "0",
        "ADB_MDNS": "0",
        "ADB_MDNS_OPENSCREEN": "0",
        "ADB_LOCAL_TRANSPORT_MAX_PORT": "5553",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_listening(port: int, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            continue
        return
    raise RuntimeError(f"adb server on port {port} ended at once with exit code {server.returncode}")
