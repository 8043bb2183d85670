"""The phone's end of the transport, spoken to packet by packet."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from tests.phones.android.adbd import Adbd, Identity, Link, Service, Terms, Trust
from tests.phones.android.packets import (
    AUTH,
    CHECKSUMMED_VERSION,
    CLSE,
    CNXN,
    OKAY,
    OPEN,
    VERSION,
    WRTE,
    Packet,
    receive_packet,
    send_packet,
)
from tests.phones.android.streams import WINDOW_BYTES, Stream

PUBLIC_KEY = 3
BANNER = "device::features=shell_v2,delayed_ack"


class Host:
    """A host that says just what a test lets it say."""

    def __init__(self, adbd: Adbd, features: bytes = b"shell_v2") -> None:
        self.connection = socket.create_connection(("127.0.0.1", adbd.port), timeout=20)
        self.send(CNXN, VERSION, 1 << 20, b"host::features=" + features)
        self.greeting = self.receive()

    def send(self, command: int, arg0: int, arg1: int, payload: bytes = b"") -> None:
        send_packet(self.connection, Packet(command, arg0, arg1, payload), checksummed=True)

    def receive(self) -> Packet | None:
        return receive_packet(self.connection)

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def adbd() -> Iterator[Adbd]:
    """A phone whose only service gives back what it is sent."""

    def echo(stream: Stream) -> None:
        while piece := stream.receive():
            stream.write(piece)

    def find(name: str, link: Link) -> Service | None:
        return echo if name == "echo:" else None

    adbd = Adbd(Terms(lambda: Identity(BANNER), find))
    adbd.listen()
    yield adbd
    adbd.cut()
    adbd.await_served()


@pytest.fixture
def host(adbd: Adbd) -> Iterator[Host]:
    host = Host(adbd)
    yield host
    host.close()


def test_the_phone_greets_with_its_banner(host: Host) -> None:
    assert host.greeting == Packet(CNXN, VERSION, 1 << 20, BANNER.encode())


def test_a_service_takes_and_gives(host: Host) -> None:
    host.send(OPEN, 7, 0, b"echo:\0")
    opened = host.receive()
    assert opened is not None
    assert (opened.command, opened.arg1) == (OKAY, 7)
    host.send(WRTE, 7, opened.arg0, b"hello")
    assert host.receive() == Packet(OKAY, opened.arg0, 7)
    assert host.receive() == Packet(WRTE, opened.arg0, 7, b"hello")


def test_one_packet_at_a_time_is_sent_until_the_host_is_ready(host: Host) -> None:
    host.send(OPEN, 7, 0, b"echo:\0")
    opened = host.receive()
    assert opened is not None
    for word in (b"one", b"two"):
        host.send(WRTE, 7, opened.arg0, word)
    commands = [packet.command for packet in (host.receive(), host.receive(), host.receive()) if packet]
    assert sorted(commands) == sorted([OKAY, OKAY, WRTE])
    host.send(OKAY, 7, opened.arg0)
    assert host.receive() == Packet(WRTE, opened.arg0, 7, b"two")


def test_delayed_acknowledgements_say_how_much_was_taken(adbd: Adbd) -> None:
    host = Host(adbd, b"shell_v2,delayed_ack")
    host.send(OPEN, 7, 4, b"echo:\0")  # four bytes may be on their way to the host
    opened = host.receive()
    assert opened is not None
    assert bytes(opened.payload) == struct.pack("<i", WINDOW_BYTES)
    host.send(WRTE, 7, opened.arg0, b"123456")
    assert host.receive() == Packet(OKAY, opened.arg0, 7, struct.pack("<i", 6))
    assert host.receive() == Packet(WRTE, opened.arg0, 7, b"123456")
    host.send(WRTE, 7, opened.arg0, b"78")
    assert host.receive() == Packet(OKAY, opened.arg0, 7, struct.pack("<i", 2))
    host.send(OKAY, 7, opened.arg0, struct.pack("<i", 6))
    assert host.receive() == Packet(WRTE, opened.arg0, 7, b"78")
    host.close()


@pytest.mark.parametrize("name", [b"", b"absent:", b"echo:\xff", b"tcp:notaport"])
def test_what_is_not_there_is_refused(host: Host, name: bytes) -> None:
    host.send(OPEN, 7, 0, name + b"\0")
    assert host.receive() == Packet(CLSE, 0, 7)


def test_bytes_for_a_stream_that_is_closed_are_answered_by_closing(host: Host) -> None:
    host.send(WRTE, 7, 99, b"late")
    assert host.receive() == Packet(CLSE, 0, 7)


def test_a_stream_that_the_host_closes_ends_its_service(adbd: Adbd, host: Host) -> None:
    host.send(OPEN, 7, 0, b"echo:\0")
    opened = host.receive()
    assert opened is not None
    host.send(CLSE, 7, opened.arg0)
    adbd.await_served()


def test_what_is_no_packet_ends_the_link(adbd: Adbd, host: Host) -> None:
    host.connection.sendall(b"GET / HTTP/1.1\r\nHost: phone\r\n\r\n")
    try:
        assert host.receive() is None
    except ConnectionError:
        pass  # it is reset where bytes were left unread


def test_a_checksum_is_sent_to_hosts_that_look_at_it(adbd: Adbd) -> None:
    with socket.create_connection(("127.0.0.1", adbd.port), timeout=20) as connection:
        send_packet(connection, Packet(CNXN, CHECKSUMMED_VERSION, 4096, b"host::\0"), checksummed=True)
        assert receive_packet(connection, checksummed=True) is not None


def test_a_service_that_is_opened_while_the_cable_goes_is_told(adbd: Adbd, host: Host) -> None:
    told = threading.Event()

    def serve(stream: Stream) -> None:
        stream.await_closed()
        told.set()

    def find(name: str, link: Link) -> Service:
        adbd.cut()
        while adbd.links():
            pass  # until the link has ended
        return serve

    adbd.terms.find = find
    host.send(OPEN, 7, 0, b"any:\0")
    assert told.wait(20)


def test_a_phone_that_is_cut_refuses_connections_and_listens_on_the_same_port_again(adbd: Adbd) -> None:
    port = adbd.port
    adbd.cut()
    assert not adbd.listening
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    adbd.listen()
    assert adbd.port == port
    Host(adbd).close()


def test_a_host_that_asks_after_it_was_agreed_to_is_let_in(adbd: Adbd) -> None:
    adbd.terms.trust = Trust.ASKS
    host = Host(adbd)
    assert host.greeting is not None
    assert host.greeting.command == AUTH
    adbd.authorize()
    host.send(AUTH, PUBLIC_KEY, 0, b"key\0")
    assert host.receive() == Packet(CNXN, VERSION, 1 << 20, BANNER.encode())
    assert adbd.terms.known_keys == [b"key"]
    host.close()


def test_an_offline_phone_answers_with_what_hosts_take_for_offline(adbd: Adbd) -> None:
    adbd.go_offline()
    host = Host(adbd)
    assert host.greeting is not None
    assert host.greeting.command == AUTH
    assert host.greeting.arg0 not in (1, 2, 3)
    host.close()
