"""One connection from an adb server: greeting, trust, and streams that it opens."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
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
    OLD_MAX_PAYLOAD_BYTES,
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


@dataclass
class Terms:
    """What a phone's connections have in common; a change holds for those that are up as well."""

    identity: Callable[[], Identity]
    find: Find
    trust: Trust = Trust.OPEN
    known_keys: list[bytes] = field(default_factory=list)
    offline: bool = False
    deaf: bool = False


class Link:
    """One connection from an adb server."""

    def __init__(
        self, connection: socket.socket, terms: Terms, in_thread: Callable[[Callable[[], None]], None]
    ) -> None:
        self._asking: bytes | None = None
        self._agreed = False
        self._connection = connection
        self._terms = terms
        self._in_thread = in_thread
        self._token = os.urandom(20)
        self._sending = threading.Lock()
        self._streams: dict[int, Stream] = {}
        self._last_id = 0
        self._lock = threading.Lock()
        self._checksummed = True
        self._max_payload_bytes = OLD_MAX_PAYLOAD_BYTES
        self._host_delays = False
        self._over = False

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
        if self._terms.deaf:
            return
        with self._sending, contextlib.suppress(OSError):
            send_packet(self._connection, packet, checksummed=self._checksummed)

    def say_hello(self) -> None:
        """Tell the host that it is let in."""
        identity = self._terms.identity()
        self.send(Packet(CNXN, identity.version, identity.max_payload_bytes, identity.banner.encode()))

    def authorize(self) -> None:
        """Agree to what the host asks: adb lists a phone as unauthorized a moment before it does."""
        self._agreed = True
        self._let_in()

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
        if self._terms.deaf:
            return
        if packet.command == WRTE:
            self._data(packet)
        elif packet.command == OKAY:
            self._acknowledged(packet)
        elif packet.command == OPEN:
            self._in_thread(lambda: self._open(packet))
        elif packet.command == CLSE:
            self._closed(packet)
        elif packet.command == CNXN:
            self._hello(packet)
        elif packet.command == AUTH:
            self._authenticate(packet)

    def _hello(self, packet: Packet) -> None:
        identity = self._terms.identity()
        self._checksummed = min(packet.arg0, identity.version) <= CHECKSUMMED_VERSION
        self._max_payload_bytes = min(packet.arg1, identity.max_payload_bytes)
        self._host_delays = b"delayed_ack" in bytes(packet.payload) and "delayed_ack" in identity.banner
        if self._terms.offline:
            self.say_offline()
        elif self._terms.trust is Trust.OPEN:
            self.say_hello()
        else:
            self.send(Packet(AUTH, _TOKEN, 0, self._token))

    def _authenticate(self, packet: Packet) -> None:
        if packet.arg0 == _PUBLIC_KEY:
            self._asking = bytes(packet.payload).rstrip(b"\0")
            self._let_in()
        elif packet.arg0 == _SIGNATURE and self._trusts(bytes(packet.payload)):
            self.say_hello()
        elif packet.arg0 == _SIGNATURE:
            self.send(Packet(AUTH, _TOKEN, 0, self._token))

    def _let_in(self) -> None:
        """Let the host in that has asked and was agreed to, whichever came last."""
        with self._lock:
            if self._asking is None or not self._agreed:
                return
            key, self._asking = self._asking, None
        self._terms.known_keys.append(key)
        self.say_hello()

    def _trusts(self, signature: bytes) -> bool:
        keys = self._terms.known_keys if self._terms.trust is Trust.ASKS else []
        return any(signed_by(key, self._token, signature) for key in keys)

    def _open(self, packet: Packet) -> None:
        service = self._terms.find(bytes(packet.payload).rstrip(b"\0").decode(errors="surrogateescape"), self)
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
            if self._over:  # the cable went while the service was being opened
                stream.hang_up()
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
            self._over = True
            streams = list(self._streams.values())
            self._streams.clear()
        for stream in streams:
            stream.hang_up()
        self._connection.close()
