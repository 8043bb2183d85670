"""The packet codec against real sockets, whole and in pieces."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.phones.android.packets import (
    CNXN,
    MAX_PAYLOAD_BYTES,
    OPEN,
    WRTE,
    BrokenPacket,
    Packet,
    checksum_of,
    header_of,
    receive_packet,
    send_packet,
)

WORDS = st.integers(0, 2**32 - 1)
PACKETS = st.builds(Packet, st.sampled_from((CNXN, OPEN, WRTE)), WORDS, WORDS, st.binary(max_size=3000))


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two joined sockets."""
    one, other = socket.socketpair()
    with one, other:
        yield one, other


@given(st.lists(PACKETS, min_size=1, max_size=5), st.booleans())
def test_packets_arrive_as_they_were_sent(packets: list[Packet], checksummed: bool) -> None:
    one, other = socket.socketpair()
    with one, other:
        for packet in packets:
            send_packet(one, packet, checksummed=checksummed)
        assert [receive_packet(other, checksummed=checksummed) for _ in packets] == packets


def test_a_payload_larger_than_the_socket_takes_arrives_whole(ends: tuple[socket.socket, socket.socket]) -> None:
    packet = Packet(WRTE, 1, 2, bytes(range(256)) * (MAX_PAYLOAD_BYTES // 256))
    sender = threading.Thread(target=send_packet, args=(ends[0], packet), kwargs={"checksummed": True})
    sender.start()
    assert receive_packet(ends[1], checksummed=True) == packet
    sender.join()


def test_an_orderly_end_is_no_packet(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].close()
    assert receive_packet(ends[1]) is None


@given(PACKETS, st.data())
def test_an_end_within_a_packet_is_broken(packet: Packet, data: st.DataObject) -> None:
    whole = header_of(packet, checksummed=False) + bytes(packet.payload)
    cut = data.draw(st.integers(1, len(whole) - 1))
    one, other = socket.socketpair()
    with one, other:
        one.sendall(whole[:cut])
        one.shutdown(socket.SHUT_WR)
        with pytest.raises(BrokenPacket, match="ended within"):
            receive_packet(other)


def test_a_wrong_magic_is_broken(ends: tuple[socket.socket, socket.socket]) -> None:
    ends[0].sendall(header_of(Packet(CNXN, 0, 0), checksummed=False)[:-4] + bytes(4))
    with pytest.raises(BrokenPacket, match="magic"):
        receive_packet(ends[1])


def test_a_length_beyond_the_limit_is_broken_before_it_is_read(ends: tuple[socket.socket, socket.socket]) -> None:
    header = bytearray(header_of(Packet(WRTE, 1, 1), checksummed=False))
    header[12:16] = (MAX_PAYLOAD_BYTES + 1).to_bytes(4, "little")
    ends[0].sendall(header)
    with pytest.raises(BrokenPacket, match="payload"):
        receive_packet(ends[1])


def test_a_wrong_checksum_is_seen_only_where_both_sides_sum(ends: tuple[socket.socket, socket.socket]) -> None:
    packet = Packet(WRTE, 1, 1, b"abc")
    send_packet(ends[0], packet, checksummed=False)
    assert receive_packet(ends[1]) == packet
    send_packet(ends[0], packet, checksummed=False)
    with pytest.raises(BrokenPacket, match="checksum"):
        receive_packet(ends[1], checksummed=True)


@given(st.binary(max_size=500))
def test_the_checksum_is_the_sum_of_all_bytes(payload: bytes) -> None:
    assert checksum_of(payload) == sum(payload)
