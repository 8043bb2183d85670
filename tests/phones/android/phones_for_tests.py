"""What tests of the virtual phone share: a real adb server, and a phone connected to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.phones.adb_server import Adb
from tests.phones.android.phone import VirtualAndroid


class Seen(NamedTuple):
    """A phone as one adb server sees it."""

    phone: VirtualAndroid
    adb: Adb

    def run(self, *arguments: str, stdin: bytes | None = None) -> Ran:
        """Run adb for this phone."""
        done = self.adb.run(*arguments, serial=self.phone.address, stdin=stdin)
        return Ran(done.stdout.decode(), done.stderr.decode(), done.returncode)

    def shell(self, command: str, stdin: bytes | None = None) -> Ran:
        """Run a command of the phone."""
        return self.run("shell", command, stdin=stdin)

    def state(self) -> str:
        """Return what `adb devices` says of the phone, empty if it is not listed."""
        lines = self.adb.run("devices").stdout.decode().splitlines()
        return dict(line.split("\t") for line in lines if "\t" in line).get(self.phone.address, "")

    def connect(self) -> str:
        """Connect anew, at once rather than when the server tries again by itself, and return what adb says."""
        self.adb.run("disconnect", self.phone.address)
        return self.adb.run("connect", self.phone.address).stdout.decode()


class Ran(NamedTuple):
    """What adb printed and how it ended; Debian's adb prints on stdout what the newer one prints on stderr."""

    stdout: str
    stderr: str
    code: int

    @property
    def text(self) -> str:
        """Return all that was printed."""
        return self.stdout + self.stderr


@contextmanager
def connected(adb: Adb, persona: str = "pixel9", **more: Any) -> Iterator[Seen]:
    """A fresh phone, connected to the server and taken from its list again."""
    with VirtualAndroid(persona, **{"runner": "python", **more}) as phone:
        seen = Seen(phone, adb)
        seen.connect()
        try:
            yield seen
        finally:
            adb.run("disconnect", phone.address)
