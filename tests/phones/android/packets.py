"""Packets of the ADB transport (AOSP `docs/dev/protocol.md`): six little-endian words, then the payload."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

import numpy as np

Payload = bytes | bytearray | memoryview

HEADER = struct.Struct("<6I")


def word(name: bytes) -> int:
    """Return the four letters of a command as the number that goes over the wire."""
    return int.from_bytes(name, "little")


CNXN, AUTH, OPEN, OKAY, CLSE, WRTE, STLS = (
    word(name) for name in (b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"CLSE", b"WRTE", b"STLS")
)

CHECKSUMMED_VERSION = 0x01000000
VERSION = 0x01000001  # from here on checksums are neither sent nor looked at
MAX_PAYLOAD_BYTES = 1 << 20
OLD_MAX_PAYLOAD_BYTES = 4096  # what phones of version 0x01000000 take


class BrokenPacket(Exception):
    """Bytes arrived that are no packet: the link cannot be resynchronised and has to be dropped."""


class Packet(NamedTuple):
    """One message of the transport."""

    command: int
    arg0: int
    arg1: int
    payload: Payload = b""


def checksum_of(payload: Payload) -> int:
    """Return the sum of all bytes, which the protocol calls a CRC."""
    return int(np.frombuffer(payload, np.uint8).sum(dtype=np.uint32))


def header_of(packet: Packet, *, checksummed: bool) -> bytes:
    """Return the 24 bytes that go before the payload."""
    checksum = checksum_of(packet.payload) if checksummed else 0
    return HEADER.pack(
        packet.command, packet.arg0, packet.arg1, len(packet.payload), checksum, packet.command ^ 0xFFFFFFFF
    )


def send_packet(connection: socket.socket, packet: Packet, *, checksummed: bool) -> None:
    """Send header and payload in one system call where the kernel takes both; never copy the payload."""
    header = header_of(packet, checksummed=checksummed)
    sent = connection.sendmsg([header, packet.payload])
    if sent < len(header):
        connection.sendall(memoryview(header)[sent:])
        sent = len(header)
    if sent < len(header) + len(packet.payload):
        connection.sendall(memoryview(packet.payload)[sent - len(header) :])


def receive_packet(connection: socket.socket, *, checksummed: bool = False) -> Packet | None:
    """Wait for one packet; None at an orderly end. Raises BrokenPacket for what is none, OSError for a broken link."""
    header = _receive(connection, HEADER.size)
    if header is None:
        return None
    command, arg0, arg1, length, checksum, magic = HEADER.unpack(header)
    if magic != command ^ 0xFFFFFFFF:
        raise BrokenPacket(f"the magic of command {command:#010x} is {magic:#010x}")
    if length > MAX_PAYLOAD_BYTES:
        raise BrokenPacket(f"{length} bytes of payload, over {MAX_PAYLOAD_BYTES}")
    payload = _receive(connection, length) if length else b""
    if payload is None:
        raise BrokenPacket("the link ended within a packet")
    if checksummed and checksum_of(payload) != checksum:
        raise BrokenPacket("the checksum does not fit the payload")
    return Packet(command, arg0, arg1, payload)


def _receive(connection: socket.socket, size: int) -> bytes | None:
    data = connection.recv(size, socket.MSG_WAITALL)  # one system call and no second copy
    if not data:
        return None
    while len(data) < size:  # a signal may cut the wait short
        more = connection.recv(size - len(data), socket.MSG_WAITALL)
        if not more:
            raise BrokenPacket("the link ended within a packet")
        data += more
    return data
