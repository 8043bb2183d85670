"""Public keys of hosts as adb sends them, and signatures made with them (RSA 2048, PKCS #1 v1.5, SHA-1)."""

from __future__ import annotations

import base64
import binascii
import struct

_WORDS = 64
_SHA1_PREFIX = bytes.fromhex("3021300906052b0e03021a05000414")


def signed_by(key: bytes, token: bytes, signature: bytes) -> bool:
    """Return whether `signature` of the 20-byte `token` was made with the host's `key` (base64, then its name)."""
    try:
        blob = base64.b64decode(key.split()[0])
    except (IndexError, binascii.Error):
        return False
    if len(blob) != 8 + 8 * _WORDS + 4:
        return False
    modulus = int.from_bytes(blob[8 : 8 + 4 * _WORDS], "little")
    (exponent,) = struct.unpack("<I", blob[-4:])
    plain = pow(int.from_bytes(signature, "big"), exponent, modulus).to_bytes(4 * _WORDS, "big")
    tail = b"\x00" + _SHA1_PREFIX + token
    return plain == b"\x00\x01" + b"\xff" * (4 * _WORDS - 2 - len(tail)) + tail
