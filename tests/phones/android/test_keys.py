"""Keys and signatures that are none; that real ones are taken is tested with real adb, which makes them."""

from __future__ import annotations

import base64

import pytest

from tests.phones.android.keys import signed_by

WELL_FORMED = base64.b64encode(bytes([64, 0, 0, 0]) + bytes(4) + b"\xff" * 512 + (65537).to_bytes(4, "little"))


@pytest.mark.parametrize("key", [b"", b"not base64!", base64.b64encode(b"short") + b" me@here"])
def test_what_is_no_key_has_signed_nothing(key: bytes) -> None:
    assert not signed_by(key, bytes(20), bytes(256))


@pytest.mark.parametrize("signature", [b"", bytes(256), b"\x01" * 256, b"\xff" * 300])
def test_a_signature_that_is_none_is_refused(signature: bytes) -> None:
    assert not signed_by(WELL_FORMED, bytes(20), signature)
