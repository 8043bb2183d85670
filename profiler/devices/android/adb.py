"""The adb server: who is connected to it, and sockets to services on a phone.

We speak to the server ourselves (developer.android.com/tools/adb; AOSP `packages/modules/adb/docs/dev/services.md`) and
take from adbutils the adb that it brings. Its own client starts servers on another port than it was given, waits for
ever, and takes “no permissions” for a state called “no”.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from profiler.clock import Clock, Deadline
from profiler.devices.android.listing import READY, Listed, advice, parse_listing
from profiler.devices.android.refusals import NotConnected, refusal
from profiler.devices.android.server_address import Address, address_from, find_adb
from profiler.errors import DeviceError, InternalError

# What `adb version` calls 1.0.41; every adb since 2018 says the same.
VERSION = 41
_START_S = 20.0
_REPLY_S = 5.0
_LOOK_S = 0.05
_MAX_REQUEST_BYTES = 0xFFFF
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
T = TypeVar("T")
_NETWORK_SERIAL = re.compile(r"^\S+:\d+$")


class Server:
    """One adb server. It is started where none runs, at the address that was asked for; never ended or replaced."""

    def __init__(
        self, address: Address | None = None, *, environment: Mapping[str, str] = os.environ, adb: str | None = None
    ) -> None:
        self.address = address or address_from(environment)
        self._environment = environment
        self._adb = adb

    def version(self) -> int:
        """Return what the server calls its version. Raises DeviceError."""
        text = self._answer("host:version")
        try:
            return int(text, 16)
        except ValueError as error:
            raise self._no_adb_server() from error

    def warning(self) -> str | None:
        """Return what to know about a server of another version than ours; it is used nevertheless."""
        version = self.version()
        if version == VERSION:
            return None
        return (
            f"the adb server on {self.address} is version 1.0.{version}, ours is 1.0.{VERSION}: it is used as it is."
            " Update the tool that started it, or end it (adb kill-server) when nothing else uses it."
        )

    def listed(self) -> tuple[Listed, ...]:
        """Return every way to a phone that the server knows. Raises DeviceError."""
        return parse_listing(self._answer("host:devices-l"))

    def connect(self, network_address: str, timeout_s: float = 15.0) -> None:
        """Reach a phone over the network. Raises DeviceError with the server's reason."""
        said = self._answer(f"host:connect:{network_address}", timeout_s)
        if not said.startswith(("connected to", "already connected to")):
            raise DeviceError(
                f"adb cannot connect to {network_address}: {said}",
                hint="Check that the phone is in the same network and that wireless debugging is on.",
            )

    def disconnect(self, network_address: str) -> None:
        """Give a phone on the network up. Raises DeviceError."""
        self._answer(f"host:disconnect:{network_address}")

    def ask(self, serial: str, request: str, transport_id: int | None = None) -> str:
        """Return the server's answer about one phone. Raises DeviceError."""
        about = f"host-serial:{serial}" if transport_id is None else f"host-transport-id:{transport_id}"
        return self._answer(f"{about}:{request}", serial=serial)

    def open(self, serial: str, service: str, timeout_s: float, transport_id: int | None = None) -> socket.socket:
        """Return a socket to a service on a phone; it waits `timeout_s` for each read. Raises DeviceError."""
        way = f"host:transport:{serial}" if transport_id is None else f"host:transport-id:{transport_id}"
        with contextlib.ExitStack() as undo:
            connection = undo.enter_context(self._connection(timeout_s))
            with self._translated(service, serial):
                for request in (way, service):
                    _send(connection, request)
                    _expect_okay(connection)
            undo.pop_all()
            return connection

    def _answer(self, request: str, timeout_s: float = _REPLY_S, serial: str = "") -> str:
        with self._connection(timeout_s) as connection, self._translated(request, serial):
            _send(connection, request)
            _expect_okay(connection)
            return _read_text(connection)

    def _connection(self, timeout_s: float) -> socket.socket:
        try:
            return self._connect(timeout_s)
        except ConnectionRefusedError:
            self._start()
        except OSError as error:
            raise self._unreachable(error) from error
        try:
            return self._connect(timeout_s)
        except OSError as error:
            raise self._unreachable(error) from error

    def _connect(self, timeout_s: float) -> socket.socket:
        connection = socket.create_connection(self.address, timeout=timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _unreachable(self, error: OSError) -> DeviceError:
        return DeviceError(
            f"no adb server answers on {self.address} ({error.strerror or error})",
            hint="Start it there with: adb start-server, or say where it is: ANDROID_ADB_SERVER_PORT.",
        )

    def _start(self) -> None:
        """Start a server here. `adb server`, unlike `adb start-server`, never ends one that came up meanwhile."""
        adb = self._adb or find_adb(self._environment)
        if self.address.host not in _LOOPBACK or adb is None:
            raise DeviceError(
                f"no adb server runs on {self.address}"
                + ("" if adb else ", and there is no adb here to start one with"),
                hint="Install Android's platform-tools (or: pip install --force-reinstall adbutils)."
                if adb is None
                else "Start it on that machine: adb -a nodaemon server.",
            )
        try:
            subprocess.run(
                [adb, "-P", str(self.address.port), "server"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_START_S,
                env=dict(self._environment),
                check=False,  # it fails where another came up first, which does as well: connecting tells
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DeviceError(
                f"cannot start an adb server with {adb}: {getattr(error, 'strerror', None) or 'it did not come up'}",
                hint="Set ADBUTILS_ADB_PATH to an adb that runs on this machine.",
            ) from error

    @contextlib.contextmanager
    def _translated(self, request: str, serial: str) -> Iterator[None]:
        """Turn what a conversation with the server can fail with into DeviceError."""
        try:
            yield
        except TimeoutError as error:
            raise DeviceError(
                f"{serial or f'the adb server on {self.address}'} gave no answer to {request!r} in time",
                hint=advice("offline").next_step if serial else "See whether another tool blocks it: adb devices.",
            ) from error
        except _Refused as error:
            raise refusal(str(error), request, serial) from error
        except _NotAdb as error:
            raise self._no_adb_server() from error
        except OSError as error:
            raise DeviceError(
                f"the adb server on {self.address} hung up ({error.strerror or error})",
                hint="Another tool may have restarted it: try again.",
            ) from error

    def _no_adb_server(self) -> DeviceError:
        return DeviceError(
            f"what listens on {self.address} is not an adb server",
            hint="Name the port of one: ANDROID_ADB_SERVER_PORT.",
        )


class Transport:
    """A way to one phone, by the serial that the server lists it under: that outlives a replugged cable."""

    def __init__(self, server: Server, serial: str, transport_id: int | None = None) -> None:
        self.server = server
        self.serial = serial
        self._transport_id = transport_id

    def open(self, service: str, timeout_s: float = 10.0) -> socket.socket:
        """Return a socket to a service of the phone, as `shell,v2,raw:ls` or `tcp:8000`. Raises DeviceError."""
        return self._reached(lambda: self.server.open(self.serial, service, timeout_s, self._transport_id))

    def features(self) -> frozenset[str]:
        """Return what the phone's adb service can do. Raises DeviceError."""
        return frozenset(self._reached(lambda: self._ask("features")).split(","))

    def state(self) -> str:
        """Return the state that the server sees it in. Raises DeviceError."""
        return self._reached(lambda: self._ask("get-state"))

    def wait(self, seconds: float, clock: Clock) -> None:
        """Wait until the phone is ready, as after a replugged cable or a restart. Raises DeviceError: why it is not."""
        deadline = Deadline(seconds, clock)
        while True:
            try:
                state = self.state()
                if state == READY:
                    return
                found = advice(state)
                raise DeviceError(f"{self.serial} {found.meaning}", hint=found.next_step)
            except DeviceError:
                if deadline.passed():
                    raise
            clock.sleep(_LOOK_S)

    def _ask(self, request: str) -> str:
        return self.server.ask(self.serial, request, self._transport_id)

    def _reached(self, ask: Callable[[], T]) -> T:
        """Connect once more to a phone on the network that the server forgot, as one does that was restarted."""
        try:
            return ask()
        except NotConnected:
            if not _NETWORK_SERIAL.match(self.serial):
                raise
        self.server.connect(self.serial)
        self._transport_id = None
        return ask()


class _Refused(Exception):
    """The server said FAIL."""


class _NotAdb(Exception):
    """The other end does not speak the server's protocol."""


def _send(connection: socket.socket, request: str) -> None:
    data = request.encode("utf-8", "surrogateescape")
    if len(data) > _MAX_REQUEST_BYTES:
        raise InternalError(f"a request of {len(data)} bytes to adb, which takes {_MAX_REQUEST_BYTES}")
    connection.sendall(b"%04x" % len(data) + data)


def _expect_okay(connection: socket.socket) -> None:
    status = read_exact(connection, 4)
    if status == b"FAIL":
        raise _Refused(_read_text(connection))
    if status != b"OKAY":
        raise _NotAdb(repr(status))


def _read_text(connection: socket.socket) -> str:
    try:
        length = int(read_exact(connection, 4), 16)
    except ValueError as error:
        raise _NotAdb(str(error)) from error
    return read_exact(connection, length).decode("utf-8", "replace")


def read_exact(connection: socket.socket, count: int) -> bytes:
    """Read that many bytes. Raises ConnectionResetError where the other end hangs up before, TimeoutError."""
    data = bytearray()
    while len(data) < count:
        chunk = connection.recv(count - len(data))
        if not chunk:
            raise ConnectionResetError("the connection was closed")
        data += chunk
    return bytes(data)
