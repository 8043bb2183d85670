"""Eight-bit weights: symmetric, one scale per row, which is an output channel of a linear layer or a word."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LEVELS = 127
_CHUNK = 1 << 20
_SMALLEST = torch.finfo(torch.float32).tiny  # so that a row of zeros has a scale to divide by


@dataclass(frozen=True, kw_only=True)
class Int8:
    """Weights as codes: row r is codes[r] * scales[r]; int8 [N, K] in −127…127, float32 [N]."""

    codes: Tensor
    scales: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the weights' shape."""
        return tuple(self.codes.shape)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of codes and scales."""
        return self.codes.nbytes + self.scales.nbytes


def encode(weights: Tensor) -> Int8:
    """Code a matrix [N, K] of any layout and float type, widened to float32; ties go to the even code.

    Needs little more memory than its result. Raises ValueError for NaN or infinity.
    """
    codes = torch.empty(weights.shape, dtype=torch.int8)
    scales = torch.empty(weights.shape[0], dtype=torch.float32)
    step = max(1, _CHUNK // max(1, weights.shape[1]))
    for start in range(0, weights.shape[0], step):
        rows = weights[start : start + step].float()
        scale = (rows.abs().amax(1) / LEVELS).clamp(min=_SMALLEST)
        scales[start : start + step] = scale
        codes[start : start + step] = (rows / scale[:, None]).round_().clamp_(-LEVELS, LEVELS)
    if not torch.isfinite(scales).all():
        raise ValueError("weights hold NaN or infinity")
    return Int8(codes=codes, scales=scales)


def decode(coded: Int8) -> Tensor:
    """Return the weights that the codes stand for, float32."""
    return decode_parts(coded.codes, coded.scales)


def decode_parts(codes: Tensor, scales: Tensor) -> Tensor:
    """Decode from tensors; plain operations, which can be traced."""
    return codes.float() * scales[:, None]
