"""DATA messages into a file, however the link cuts them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.phones.android.intake import REQUEST, Intake, IntakeFailed
from tests.phones.android.packets import OKAY, Packet
from tests.phones.android.streams import ACKNOWLEDGED_AHEAD_BYTES, Stream, StreamClosed

CHUNKS = st.lists(st.one_of(st.binary(min_size=1, max_size=300), st.integers(1, 300).map(bytes)), max_size=8)
ROOM = 1 << 40


def stream_of(pieces: list[bytes], sent: list[Packet] | None = None) -> Stream:
    """A stream on which these pieces have arrived, and then the host hung up."""
    stream = Stream(1, 2, (sent if sent is not None else []).append, 4096)
    for piece in pieces:
        stream.arrived(piece)
    stream.hang_up()
    return stream


def messages(chunks: list[bytes], seconds: int) -> bytes:
    """What a host sends of a file."""
    return b"".join(REQUEST.pack(b"DATA", len(chunk)) + chunk for chunk in chunks) + REQUEST.pack(b"DONE", seconds)


def taken(stream: Stream, path: Path, room_bytes: int = ROOM) -> int:
    """Take a file in; return the seconds of its end."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        return Intake(stream).run(file, room_bytes)
    finally:
        os.close(file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHUNKS, st.lists(st.integers(1, 60), min_size=1, max_size=50), st.integers(0, 2**32 - 1))
def test_a_file_arrives_whole_wherever_the_link_cuts(
    tmp_path: Path, chunks: list[bytes], cuts: list[int], seconds: int
) -> None:
    rest = messages(chunks, seconds)
    pieces = []
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    pieces = [piece for piece in [*pieces, rest] if piece]
    assert taken(stream_of(pieces), tmp_path / "file") == seconds
    assert (tmp_path / "file").read_bytes() == b"".join(chunks)


def test_what_follows_the_end_is_left_for_who_reads_next(tmp_path: Path) -> None:
    stream = stream_of([messages([b"one"], 1) + messages([b"two"], 2)[:5], messages([b"two"], 2)[5:] + b"QUIT"])
    assert [taken(stream, tmp_path / "one"), taken(stream, tmp_path / "two")] == [1, 2]
    assert (tmp_path / "two").read_bytes() == b"two"
    assert stream.receive() == b"QUIT"


def test_zeros_take_no_room_on_this_machine(tmp_path: Path) -> None:
    zeros = bytes(64 * 1024)
    taken(stream_of([messages([zeros] * 16, 7)]), tmp_path / "file")
    status = (tmp_path / "file").stat()
    assert status.st_size == 1 << 20
    assert status.st_blocks == 0


def test_more_than_the_room_is_refused_and_nothing_beyond_it_written(tmp_path: Path) -> None:
    pieces = [REQUEST.pack(b"DATA", 60) + bytes(range(60)), REQUEST.pack(b"DATA", 60) + bytes(60)]
    with pytest.raises(IntakeFailed, match="write failed: No space left on device"):
        taken(stream_of(pieces), tmp_path / "file", room_bytes=100)
    assert (tmp_path / "file").stat().st_size <= 100


@pytest.mark.parametrize("cut", [5, 8, 70, 136, 140, 200])
def test_after_a_failure_the_rest_is_read_to_its_end_and_no_further(tmp_path: Path, cut: int) -> None:
    sent = messages([b"x" * 60] * 4, 1) + b"QUIT"
    stream = stream_of([sent[:cut], sent[cut:]])
    intake = Intake(stream)
    with (tmp_path / "file").open("wb") as file, pytest.raises(IntakeFailed):
        intake.run(file.fileno(), 10)
    intake.swallow()
    assert stream.receive() == b"QUIT"


def test_a_message_that_is_neither_data_nor_done_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IntakeFailed, match="invalid data message"):
        taken(stream_of([REQUEST.pack(b"WHAT", 0)]), tmp_path / "file")


@pytest.mark.parametrize("cut", [3, 8, 20])
def test_a_host_that_goes_is_noticed(tmp_path: Path, cut: int) -> None:
    with pytest.raises(StreamClosed):
        taken(stream_of([messages([b"x" * 40], 0)[:cut]]), tmp_path / "file")


def test_what_is_not_read_holds_the_host_back() -> None:
    sent: list[Packet] = []
    stream = Stream(1, 2, sent.append, 1 << 20)
    piece = bytes(1 << 20)
    for _ in range(ACKNOWLEDGED_AHEAD_BYTES // len(piece) + 1):
        stream.arrived(piece)
    held_back = ACKNOWLEDGED_AHEAD_BYTES // len(piece)
    assert [packet.command for packet in sent] == [OKAY] * held_back
    while len(sent) == held_back:
        stream.receive()
    assert sent[-1].command == OKAY
