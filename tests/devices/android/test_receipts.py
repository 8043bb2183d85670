"""What proves that a file on a phone is the right one: torn, foreign and outdated receipts do not."""

from __future__ import annotations

from profiler.devices.android.receipts import (
    Receipt,
    line_of,
    proven,
    read_hashes,
    read_receipts,
    read_states,
    time_of,
)
from profiler.records.bundle import BundleFile

HASH = "ab" * 32
ENTRY = BundleFile(path="text/odd name, it's.bin", size_bytes=7, sha256=HASH)
RECEIPT = Receipt(HASH, 7, 1_000_000_000)


def test_a_receipt_is_read_as_it_was_written() -> None:
    assert read_receipts(line_of(ENTRY.path, RECEIPT)) == {ENTRY.path: RECEIPT}


def test_a_torn_or_foreign_line_is_no_receipt() -> None:
    line = line_of(ENTRY.path, RECEIPT)

    for torn in (line[10:], line[:70], f"{HASH} x 1 ./a", f"{HASH} 1", "", "is 7 1000000000 ./a"):
        assert read_receipts(torn) == {}


def test_the_last_receipt_of_a_file_counts() -> None:
    later = RECEIPT._replace(mtime_s=5)

    assert read_receipts(f"{line_of('a', RECEIPT)}\n{line_of('a', later)}\n") == {"a": later}


def test_a_file_is_proven_only_while_size_time_and_content_are_the_receipts() -> None:
    receipts, states = {ENTRY.path: RECEIPT}, {ENTRY.path: (7, 1_000_000_000)}

    assert proven(ENTRY, receipts, states)
    assert not proven(ENTRY, receipts, {})
    assert not proven(ENTRY, {}, states)
    assert not proven(ENTRY, receipts, {ENTRY.path: (8, 1_000_000_000)})
    assert not proven(ENTRY, receipts, {ENTRY.path: (7, 1_000_000_001)})
    assert not proven(ENTRY, {ENTRY.path: RECEIPT._replace(sha256="cd" * 32)}, states)


def test_states_and_hashes_are_read_with_blanks_in_names() -> None:
    assert read_states("is 7 1000000000 ./a b\nstat: ./x: No such file\n") == {"a b": (7, 1_000_000_000)}
    assert read_hashes(f"{HASH}  ./a  b\nsha256sum: ./x: No such file\n") == {"a  b": HASH}


def test_the_time_of_a_file_is_long_past_and_differs_with_its_content() -> None:
    other = BundleFile(path="a", size_bytes=7, sha256="cd" * 32)

    assert 946_684_800 <= time_of(ENTRY) < 1_230_768_000
    assert time_of(ENTRY) != time_of(other)
