"""Core ML's weight files, written and read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from exporters.mil_weights import Blobs, BlobWriter, BrokenBlob

FLOATS = np.arange(6, dtype=np.float32).reshape(2, 3)
HALVES = np.arange(100, dtype=np.float16)


def test_what_is_written_is_read_and_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "weight.bin"
    with BlobWriter(path) as blobs:
        first = blobs.write("FLOAT32", FLOATS.nbytes, iter([FLOATS]))
    with BlobWriter(path) as blobs:
        second = blobs.write("FLOAT16", HALVES.nbytes, iter([HALVES[:30], HALVES[30:]]))
    assert first % 64 == second % 64 == 0
    assert Blobs(path).read(first, "FLOAT32", (2, 3)).tolist() == FLOATS.tolist()
    assert Blobs(path).read(second, "FLOAT16", (100,)).tolist() == HALVES.tolist()
    assert path.read_bytes()[:8] == (2).to_bytes(4, "little") * 2  # two constants, version two


def test_four_bit_values_come_low_half_first(tmp_path: Path) -> None:
    with BlobWriter(tmp_path / "weight.bin") as blobs:
        offset = blobs.write("UINT4", 4, iter([np.array([0x21, 0x43, 0x65, 0x87], np.uint8)]))
    found = Blobs(tmp_path / "weight.bin")
    assert found.read(offset, "UINT4", (2, 4)).tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert found.read(offset, "UINT4", (2, 4), torch.tensor([1])).tolist() == [[5, 6, 7, 8]]
    assert found.read(offset, "UINT4", (8, 1), torch.tensor([6, 1])).tolist() == [[7], [2]]  # two rows a byte


def test_rows_are_those_that_were_asked_for(tmp_path: Path) -> None:
    with BlobWriter(tmp_path / "weight.bin") as blobs:
        offset = blobs.write("FLOAT32", FLOATS.nbytes, iter([FLOATS]))
    found = Blobs(tmp_path / "weight.bin").read(offset, "FLOAT32", (2, 3), torch.tensor([1, 1, 0]))
    assert found.tolist() == FLOATS[[1, 1, 0]].tolist()


def test_pieces_that_are_not_what_was_announced_are_refused(tmp_path: Path) -> None:
    with BlobWriter(tmp_path / "weight.bin") as blobs, pytest.raises(BrokenBlob, match="24 bytes came as 12"):
        blobs.write("FLOAT32", 24, iter([FLOATS[:1]]))
