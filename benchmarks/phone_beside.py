"""A virtual phone in a process of its own, as a real one is, and a real adb server.

In our process it would share an interpreter with what is measured, and the adb program would not.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from profiler.devices.android.adb import Server, Transport
from tests.phones.adb_server import Adb, adb_server
from tests.phones.android.phone import VirtualAndroid


class Beside(NamedTuple):
    """A connected phone, for adb and for us."""

    adb: Adb
    transport: Transport

    @property
    def serial(self) -> str:
        """Return what both know it by."""
        return self.transport.serial


@contextlib.contextmanager
def phone_beside() -> Iterator[Beside]:
    """Start a server and a phone, connect them, and end both."""
    with tempfile.TemporaryDirectory() as home, adb_server(Path(home)) as adb, _phone() as address:
        server = Server(environment=adb.environment)
        server.connect(address)
        yield Beside(adb, Transport(server, address))


@contextlib.contextmanager
def _phone() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", __spec__.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()  # closes its standard input, at which it ends


def main() -> None:
    """Be a phone until standard input ends."""
    with VirtualAndroid("pixel9") as phone:
        print(phone.address, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
