"""NF4, against bitsandbytes on this machine's CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from exporters.quantize import nf4


def oracle() -> Any:
    return pytest.importorskip("bitsandbytes.functional")


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def with_ties() -> Tensor:
    """Return blocks that hold every midpoint, and its neighbours in float32, of a scale that is a power of two."""
    book = nf4.code_book()
    middle = (book[:-1] + book[1:]) / 2
    down, up = (torch.nextafter(middle, torch.tensor(limit)) for limit in (-2.0, 2.0))
    block = torch.cat([torch.tensor([1.0, -1.0]), book, middle, down, up])[:64]
    return torch.cat([block, block * 2**-20, block * 8])


SAMPLES = {
    "random": normal(96, 128),
    "wide": normal(8, 64 * 41, seed=1) * torch.logspace(-8, 8, 8)[:, None],
    "larger than a chunk": normal(300, 512, seed=2),
    "a row longer than a chunk": normal(2, 70_001, seed=20),
    "zero": torch.zeros(4, 64),
    "zero blocks": torch.cat([torch.zeros(2, 64), normal(2, 64, seed=3)]),
    "negative zero": -torch.zeros(2, 64),
    "subnormal": normal(8, 64, seed=4) * 1e-40,
    "smallest": torch.full((2, 64), 1e-45),
    "near the reciprocal's limit": normal(8, 64, seed=5) * 1e-38,
    "subnormal end": normal(100, seed=6) * 1e-39,
    "zero end": torch.cat([normal(64, seed=7), torch.zeros(5)]),
    "largest": torch.full((1, 64), torch.finfo(torch.float32).max),
    "odd": normal(7, 13, seed=8),
    "odd rows": normal(33, 65, seed=9),
    "one": torch.tensor([0.3]),
    "three dimensions": normal(3, 5, 70, seed=10),
    "transposed": normal(96, 200, seed=11).t(),
    "strided": normal(64, 256, seed=12)[::2, ::3],
    "ties": with_ties(),
    "half": normal(64, 96, seed=13).half(),
    "bfloat16": normal(64, 96, seed=14).bfloat16(),
    "bfloat16, transposed and odd": normal(31, 65, seed=15).bfloat16().t(),
}


@pytest.mark.parametrize("weights", SAMPLES.values(), ids=SAMPLES)
def test_codes_scales_and_decoded_weights_equal_those_of_bitsandbytes(weights: Tensor) -> None:
    codes, state = oracle().quantize_4bit(weights, blocksize=64, quant_type="nf4")
    coded = nf4.encode(weights)
    assert torch.equal(coded.codes, codes.reshape(-1))
    assert torch.equal(coded.absmax, state.absmax)
    decoded = torch.ops.bitsandbytes.dequantize_4bit.default(
        codes, state.absmax, 64, "nf4", [weights.numel()], torch.float32
    )
    assert torch.equal(nf4.decode(coded), decoded.reshape(weights.shape))


def test_the_code_book_is_that_of_bitsandbytes() -> None:
    assert torch.equal(nf4.code_book(), oracle().get_4bit_type("nf4", device="cpu"))


@given(st.integers(1, 9), st.integers(1, 300), st.integers(0, 10_000), st.floats(-30, 30))
def test_any_matrix_is_coded_as_bitsandbytes_codes_it(rows: int, width: int, seed: int, exponent: float) -> None:
    weights = normal(rows, width, seed=seed) * 10.0**exponent
    codes, state = oracle().quantize_4bit(weights, blocksize=64, quant_type="nf4")
    coded = nf4.encode(weights)
    assert torch.equal(coded.codes, codes.reshape(-1))
    assert torch.equal(coded.absmax, state.absmax)


def test_a_level_is_its_own_code() -> None:
    weights = nf4.code_book().repeat(4)
    assert torch.equal(nf4.decode(nf4.encode(weights)), weights)


def test_scales_in_half_precision_leave_the_codes_as_they_are() -> None:
    weights = normal(16, 128)
    full, half = nf4.encode(weights), nf4.encode(weights, torch.float16)
    assert torch.equal(full.codes, half.codes)
    assert torch.equal(full.absmax.half(), half.absmax)
    assert full.size_bytes - half.size_bytes == 2 * 16 * 128 // 64


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("place", [0, 64, 69])
def test_undefined_weights_are_refused(bad: float, place: int) -> None:
    weights = normal(70)
    weights[place] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        nf4.encode(weights)


def test_a_scale_too_large_for_half_precision_is_refused() -> None:
    with pytest.raises(ValueError, match="scales too large"):
        nf4.encode(torch.full((64,), 1e5), torch.float16)


def test_no_weights_are_no_codes() -> None:
    coded = nf4.encode(torch.zeros(0, 64))
    assert coded.size_bytes == 0
    assert nf4.decode(coded).shape == (0, 64)
