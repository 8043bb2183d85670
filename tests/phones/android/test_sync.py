"""The file service without a host: what it says to wrong requests, and what adb itself never sends."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.phones.android.intake import REQUEST
from tests.phones.android.packets import CLSE, OKAY, WRTE, Packet
from tests.phones.android.rootfs import SHELL_UID, Rootfs
from tests.phones.android.streams import Stream, StreamClosed
from tests.phones.android.sync import SyncService
from tests.phones.android.sync_status import ENTRY2, STAT1, STAT2


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Rootfs]:
    root = tmp_path / "phone"
    (root / "data").mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(root / "data", SHELL_UID, SHELL_UID)
    files = Rootfs(root)
    yield files
    files.close()


def request(name: bytes, text: bytes) -> bytes:
    return REQUEST.pack(name, len(text)) + text


def answer(files: Rootfs, sent: bytes, room_bytes: int = 1 << 40) -> bytes:
    """Return what the phone writes until the host, which has sent this, hangs up."""
    said = bytearray()

    def take(packet: Packet) -> None:
        assert packet.command in (WRTE, OKAY, CLSE)
        if packet.command == WRTE:
            said.extend(packet.payload)
            stream.acknowledged(b"")

    stream = Stream(1, 2, take, 4096)
    stream.arrived(sent + request(b"QUIT", b""))
    try:
        SyncService(stream, files, lambda: room_bytes, lambda size: None).run()
    except StreamClosed:
        pass  # after a failure
    return bytes(said)


def failure(text: str) -> bytes:
    return request(b"FAIL", text.encode())


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (REQUEST.pack(b"STAT", 1025), "path too long"),
        (request(b"WHAT", b"/data"), f"unknown command {int.from_bytes(b'WHAT', 'little'):08x}"),
        (request(b"SEND", b"/data/file"), "missing , in ID_SEND_V1"),
        (request(b"SEND", b"/data/file,rw"), "bad mode"),
        (request(b"SND2", b"/data/file") + struct.pack("<4sII", b"SND2", 0o644, 1), "unknown flags: 1"),
        (request(b"RCV2", b"/data/file") + struct.pack("<4sI", b"RCV2", 4), "unknown flags: 4"),
        (request(b"RECV", b"/data/absent"), "open failed: No such file or directory"),
        (request(b"RECV", b"/data"), "read failed: Is a directory"),
        (request(b"SEND", b"/data,33188") + REQUEST.pack(b"DONE", 1), "couldn't create file: Is a directory"),
        (request(b"SEND", b"/data/f,33188") + request(b"MORE", b""), "invalid data message"),
        (request(b"SEND", b"/data/l,41471") + REQUEST.pack(b"DONE", 1), "invalid data message: expected ID_DATA"),
    ],
)
def test_a_request_that_cannot_be_served_fails_with_its_reason(files: Rootfs, sent: bytes, reason: str) -> None:
    assert answer(files, sent) == failure(reason)


def test_a_push_that_does_not_fit_fails_and_is_read_to_its_end(files: Rootfs) -> None:
    sent = request(b"SEND", b"/data/file,33188") + request(b"DATA", b"x" * 900) * 3 + REQUEST.pack(b"DONE", 1)
    assert answer(files, sent, room_bytes=1000) == failure("write failed: No space left on device")
    assert not (files.root / "data/file").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=2000), st.integers(0, 2**31), st.sampled_from([0o600, 0o644, 0o755]))
def test_what_is_sent_is_received_in_both_versions(files: Rootfs, content: bytes, seconds: int, mode: int) -> None:
    data = (request(b"DATA", content) if content else b"") + REQUEST.pack(b"DONE", seconds)
    first = request(b"SEND", b"/data/one," + str(0o100000 | mode).encode()) + data
    second = request(b"SND2", b"/data/two") + struct.pack("<4sII", b"SND2", 0o100000 | mode, 0) + data
    assert answer(files, first + second) == REQUEST.pack(b"OKAY", 0) * 2
    received = request(b"RECV", b"/data/one") + request(b"RCV2", b"/data/two") + struct.pack("<4sI", b"RCV2", 0)
    framed = (request(b"DATA", content) if content else b"") + REQUEST.pack(b"DONE", 0)
    assert answer(files, received) == framed * 2
    assert int((files.root / "data/one").stat().st_mtime) == seconds


def test_a_dry_run_writes_nothing(files: Rootfs) -> None:
    sent = request(b"SND2", b"/data/file") + struct.pack("<4sII", b"SND2", 0o644, 0x80000000)
    assert answer(files, sent + request(b"DATA", b"abc") + REQUEST.pack(b"DONE", 1)) == REQUEST.pack(b"OKAY", 0)
    assert list((files.root / "data").iterdir()) == []


def test_a_link_is_sent_as_one(files: Rootfs) -> None:
    sent = request(b"SEND", b"/data/new/link,41471") + request(b"DATA", b"/data/target\0") + REQUEST.pack(b"DONE", 9)
    assert answer(files, sent) == REQUEST.pack(b"OKAY", 0)
    assert os.readlink(files.root / "data/new/link") == "/data/target"


def test_sizes_wrap_in_the_first_version_and_are_whole_in_the_second(files: Rootfs) -> None:
    with (files.root / "data/large").open("wb") as file:
        file.truncate((5 << 30) + 7)
    said = answer(files, request(b"STAT", b"/data/large") + request(b"STA2", b"/data/large"))
    assert STAT1.unpack(said[: STAT1.size])[2] == (1 << 30) + 7
    assert STAT2.unpack(said[STAT1.size :])[8] == (5 << 30) + 7


def test_what_is_not_there_is_zeros_in_the_first_version_and_an_error_in_the_second(files: Rootfs) -> None:
    said = answer(files, request(b"STAT", b"/data/absent") + request(b"LST2", b"/data/absent/below"))
    assert STAT1.unpack(said[: STAT1.size])[1:] == (0, 0, 0)
    assert STAT2.unpack(said[STAT1.size :])[1] == errno.ENOENT


def test_a_folder_is_listed_with_what_lies_in_it(files: Rootfs) -> None:
    (files.root / "data/ünïcödé").write_bytes(b"12345")
    said = answer(files, request(b"LIS2", b"/data"))
    names = []
    while (entry := ENTRY2.unpack(said[: ENTRY2.size]))[0] == b"DNT2":
        names.append((said[ENTRY2.size : ENTRY2.size + entry[-1]].decode(), entry[8]))
        said = said[ENTRY2.size + entry[-1] :]
    assert names[:2] == [(".", names[0][1]), ("..", names[1][1])]
    assert names[2:] == [("ünïcödé", 5)]
    assert said == ENTRY2.pack(b"DONE", *(0,) * 12)
