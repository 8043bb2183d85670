"""The phone's end of the ADB transport, on a port of 127.0.0.1."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tests.phones.android.keys import signed_by
from tests.phones.android.packets import (
    AUTH,
    CHECKSUMMED_VERSION,
    CLSE,
    CNXN,
    MAX_PAYLOAD_BYTES,
    OKAY,
    OPEN,
    VERSION,
    WRTE,
    BrokenPacket,
    Packet,
    receive_packet,
    send_packet,
)
from tests.phones.android.streams import WINDOW_BYTES, Stream, StreamClosed

_TOKEN, _SIGNATURE, _PUBLIC_KEY = 1, 2, 3
_NO_SUCH_AUTH = 99  # a host takes an AUTH of unknown kind for "the phone is not there": it lists it as offline


class Trust(Enum):
    """What the phone does with a host whose key it does not know."""

    OPEN = "open"
    ASKS = "asks"
    DENIES = "denies"


class Identity(NamedTuple):
    """What the phone says in its CNXN: `banner` such as `device::ro.product.model=Pixel 9;features=shell_v2`."""

    banner: str
    version: int = VERSION
    max_payload_bytes: int = MAX_PAYLOAD_BYTES


Service = Callable[[Stream], None]
"""Serve one stream until it is done; the stream is closed afterwards."""

Find = Callable[[str, "Link"], Service | None]
"""Return what serves the name that a host opens, None for what the phone does not have; may connect first."""


class Adbd:
    """Listen for adb servers; several may be connected at once, as over USB and Wi-Fi."""

    def __init__(self, identity: Callable[[], Identity], find: Find, *, trust: Trust = Trust.OPEN, port: int = 0):
        self.identity = identity
        self.find = find
        self.trust = trust
        self.known_keys: list[bytes] = []
        self.offline = False
        self.deaf = False
        self.port = port
        self._listener: socket.socket | None = None
        self._serving: set[threading.Thread] = set()
        self._links: list[Link] = []
        self._lock = threading.Lock()

    def listen(self) -> None:
        """Listen on the port of before, or on a free one the first time."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=16)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), name="adbd", daemon=True).start()

    @property
    def listening(self) -> bool:
        """Tell whether a host may connect."""
        return self._listener is not None

    def cut(self) -> None:
        """Stop listening and drop every link at once, as a pulled cable does."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
            listener.close()
        self.drop_links()

    def await_served(self) -> None:
        """Wait until no service runs any more; `cut` before."""
        for thread in tuple(self._serving):
            thread.join()

    def serve(self, open_one: Callable[[Packet], None], packet: Packet) -> None:
        """Serve one opened stream in a thread of its own."""

        def serving() -> None:
            try:
                open_one(packet)
            finally:
                self._serving.discard(threading.current_thread())

        thread = threading.Thread(target=serving, name="adbd-service", daemon=True)
        self._serving.add(thread)
        thread.start()

    def drop_links(self) -> None:
        """Reset every connection; the port stays open."""
        for link in self.links():
            link.cut()

    def links(self) -> list[Link]:
        """Return the connections that are up."""
        with self._lock:
            return list(self._links)

    def authorize(self) -> None:
        """Answer "Allow USB debugging?" with yes, for the hosts that ask now and for later."""
        self.trust = Trust.ASKS if self.trust is Trust.DENIES else self.trust
        for link in self.links():
            if link.asking is not None:
                self.known_keys.append(link.asking)
                link.say_hello()

    def go_offline(self) -> None:
        """Let hosts list the phone as offline until `cut` and `listen`."""
        self.offline = True
        for link in self.links():
            link.say_offline()

    def forget(self, link: Link) -> None:
        """Take a link off the list."""
        with self._lock:
            if link in self._links:
                self._links.remove(link)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(connection, self)
            with self._lock:
                self._links.append(link)
            threading.Thread(target=link.run, name="adbd-link", daemon=True).start()


class Link:
    """One connection from an adb server."""

    def __init__(self, connection: socket.socket, adbd: Adbd) -> None:
        self.asking: bytes | None = None
        self._connection = connection
        self._adbd = adbd
        self._token = os.urandom(20)
        self._sending = threading.Lock()
        self._streams: dict[int, Stream] = {}
        self._last_id = 0
        self._lock = threading.Lock()
        self._checksummed = True
        self._max_payload_bytes = 4096
        self._host_delays = False

    def run(self) -> None:
        """Serve the host until either side goes."""
        try:
            while (packet := receive_packet(self._connection)) is not None:
                self._take(packet)
        except (OSError, BrokenPacket):
            pass  # a link that breaks is what a cable does
        finally:
            self._end()

    @property
    def listening(self) -> bool:
        """Tell whether a host may connect."""
        return self._listener is not None

    def cut(self) -> None:
        """Reset the connection: the host sees an error at once, whatever is under way."""
        with contextlib.suppress(OSError):
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._connection.shutdown(socket.SHUT_RDWR)

    def send(self, packet: Packet) -> None:
        """Put a packet on the wire; a broken link is seen by the reader."""
        if self._adbd.deaf:
            return
        with self._sending, contextlib.suppress(OSError):
            send_packet(self._connection, packet, checksummed=self._checksummed)

    def say_hello(self) -> None:
        """Tell the host that it is let in."""
        self.asking = None
        identity = self._adbd.identity()
        self.send(Packet(CNXN, identity.version, identity.max_payload_bytes, identity.banner.encode()))

    def say_offline(self) -> None:
        """Let the host list the phone as offline."""
        self.send(Packet(AUTH, _NO_SUCH_AUTH, 0))

    def open_from_phone(self, name: str) -> Stream:
        """Open a service of the host, as a reversed socket does."""
        stream = self._new_stream(0, 0)
        stream.expect_answer()
        self.send(Packet(OPEN, stream.local, 0, name.encode() + b"\0"))
        return stream

    def _take(self, packet: Packet) -> None:
        if self._adbd.deaf:
            return
        if packet.command == WRTE:
            self._data(packet)
        elif packet.command == OKAY:
            self._acknowledged(packet)
        elif packet.command == OPEN:
            self._adbd.serve(self._open, packet)
        elif packet.command == CLSE:
            self._closed(packet)
        elif packet.command == CNXN:
            self._hello(packet)
        elif packet.command == AUTH:
            self._authenticate(packet)

    def _hello(self, packet: Packet) -> None:
        identity = self._adbd.identity()
        self._checksummed = min(packet.arg0, identity.version) <= CHECKSUMMED_VERSION
        self._max_payload_bytes = min(packet.arg1, identity.max_payload_bytes)
        self._host_delays = b"delayed_ack" in bytes(packet.payload) and "delayed_ack" in identity.banner
        if self._adbd.offline:
            self.say_offline()
        elif self._adbd.trust is Trust.OPEN:
            self.say_hello()
        else:
            self.send(Packet(AUTH, _TOKEN, 0, self._token))

    def _authenticate(self, packet: Packet) -> None:
        if packet.arg0 == _PUBLIC_KEY:
            self.asking = bytes(packet.payload).rstrip(b"\0")
        elif packet.arg0 == _SIGNATURE and self._trusts(bytes(packet.payload)):
            self.say_hello()
        elif packet.arg0 == _SIGNATURE:
            self.send(Packet(AUTH, _TOKEN, 0, self._token))

    def _trusts(self, signature: bytes) -> bool:
        keys = self._adbd.known_keys if self._adbd.trust is Trust.ASKS else []
        return any(signed_by(key, self._token, signature) for key in keys)

    def _open(self, packet: Packet) -> None:
        service = self._adbd.find(bytes(packet.payload).rstrip(b"\0").decode(errors="surrogateescape"), self)
        if service is None:
            self.send(Packet(CLSE, 0, packet.arg0))
            return
        credit_bytes = packet.arg1 if self._host_delays else 0
        stream = self._new_stream(packet.arg0, credit_bytes)
        window = struct.pack("<i", WINDOW_BYTES) if credit_bytes else b""
        self.send(Packet(OKAY, stream.local, stream.remote, window))
        try:
            service(stream)
        except StreamClosed:
            pass  # the host lost interest, or the cable went
        finally:
            stream.close()
            self._drop(stream)

    def _new_stream(self, remote: int, credit_bytes: int) -> Stream:
        with self._lock:
            self._last_id += 1
            stream = Stream(self._last_id, remote, self.send, self._max_payload_bytes, credit_bytes)
            self._streams[stream.local] = stream
        return stream

    def _drop(self, stream: Stream) -> None:
        with self._lock:
            self._streams.pop(stream.local, None)

    def _data(self, packet: Packet) -> None:
        stream = self._streams.get(packet.arg1)
        if stream is None:
            self.send(Packet(CLSE, 0, packet.arg0))
        else:
            stream.arrived(packet.payload)

    def _acknowledged(self, packet: Packet) -> None:
        stream = self._streams.get(packet.arg1)
        if stream is not None:
            stream.remote = stream.remote or packet.arg0
            stream.acknowledged(packet.payload)

    def _closed(self, packet: Packet) -> None:
        stream = self._streams.pop(packet.arg1, None)
        if stream is not None:
            stream.hang_up()

    def _end(self) -> None:
        with self._lock:
            streams = list(self._streams.values())
            self._streams.clear()
        for stream in streams:
            stream.hang_up()
        self._connection.close()
        self._adbd.forget(self)
