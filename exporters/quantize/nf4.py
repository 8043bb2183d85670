"""NormalFloat4: 16 levels at a normal distribution's quantiles, scaled per 64 weights.

Dettmers et al., QLoRA (2023), https://arxiv.org/abs/2305.14314, appendix E. Codes and scales are equal bit for bit to
those that bitsandbytes computes on a CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd, prod

import torch
from torch import Tensor, nn

BLOCK = 64
CODE_BOOK = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)
_ZERO = CODE_BOOK.index(0.0)
# A subnormal scale has no finite reciprocal; bitsandbytes divides by no less than this.
_SMALLEST = 1e-38
# Weights coded at a time: what one takes through 15 comparisons then stays in a core's cache.
_CHUNK = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Nf4:
    """Weights as codes; block b of 64 along the flattened row-major weights is CODE_BOOK[code] * absmax[b].

    `codes` is uint8 [⌈n / 2⌉], the earlier weight in the high four bits; `absmax` is float32 or float16 [⌈n / 64⌉].
    """

    codes: Tensor
    absmax: Tensor
    shape: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Return the bytes of codes and scales."""
        return self.codes.nbytes + self.absmax.nbytes


def code_book() -> Tensor:
    """Return the 16 levels, float32, in rising order."""
    return torch.tensor(CODE_BOOK, dtype=torch.float32)


def encode(weights: Tensor, absmax_dtype: torch.dtype = torch.float32) -> Nf4:
    """Code weights of any shape, layout and float type, which is widened to float32 first.

    Codes follow from scales in float32 whatever type they are kept in. A value half-way between two levels takes the
    lower one. Needs little more memory than its result. Raises ValueError for NaN, infinity, or scales beyond
    `absmax_dtype`.
    """
    count = weights.numel()
    codes = torch.empty(-(-count // 2), dtype=torch.uint8)
    absmax = torch.empty(-(-count // BLOCK), dtype=absmax_dtype)
    done = 0
    for values in _chunks(weights):
        until = done + len(values)
        packed, scales = _encode_chunk(values)
        codes[done // 2 : -(-until // 2)] = packed
        absmax[done // BLOCK : -(-until // BLOCK)] = scales
        done = until
    if not torch.isfinite(absmax).all():
        raise ValueError(f"weights hold NaN or infinity, or scales too large for {absmax_dtype}")
    return Nf4(codes=codes, absmax=absmax, shape=tuple(weights.shape))


def decode(coded: Nf4) -> Tensor:
    """Return the weights that the codes stand for, float32."""
    return decode_parts(coded.codes, coded.absmax, pair_book(), coded.shape)


def decode_parts(codes: Tensor, absmax: Tensor, pairs: Tensor, shape: Sequence[int]) -> Tensor:
    """Decode from tensors, of which `pairs` is the pair book; plain operations, which can be traced."""
    count = prod(shape)
    levels = nn.functional.embedding(codes.int(), pairs).reshape(-1)[:count]
    scales = absmax.float()
    whole = count - count % BLOCK
    blocks = levels[:whole].reshape(-1, BLOCK) * scales[: whole // BLOCK, None]
    if whole == count:
        return blocks.reshape(shape)
    return torch.cat([blocks.reshape(-1), levels[whole:] * scales[-1]]).reshape(shape)


def pair_book() -> Tensor:
    """Return what each byte's two codes stand for, float32 [256, 2]."""
    book = code_book()
    return torch.stack([book.repeat_interleave(16), book.repeat(16)], dim=1)


def _chunks(weights: Tensor) -> Iterator[Tensor]:
    """Yield flat float32 pieces of whole blocks, in row-major order; only the last may end within a block."""
    rows = weights if weights.dim() else weights[None]
    width = max(prod(rows.shape[1:]), 1)
    together = BLOCK // gcd(BLOCK, width)  # so many rows end at a block's end
    step = together * max(1, _CHUNK // (together * width))
    for start in range(0, rows.shape[0], step):
        values = rows[start : start + step].reshape(-1)
        for begin in range(0, len(values), _CHUNK):
            yield values[begin : begin + _CHUNK].float()


def _encode_chunk(values: Tensor) -> tuple[Tensor, Tensor]:
    whole = len(values) - len(values) % BLOCK
    scales = values[:whole].view(-1, BLOCK).abs().amax(1)
    scaled = (values[:whole].view(-1, BLOCK) * (1.0 / scales.clamp(min=_SMALLEST))[:, None]).view(-1)
    if whole < len(values):  # bitsandbytes divides here, and keeps the scale it divided by
        last = values[whole:].abs().amax().clamp(min=_SMALLEST)
        scales, scaled = torch.cat([scales, last[None]]), torch.cat([scaled, values[whole:] / last])
    return _pack(_nearest(scaled)), scales


def _nearest(scaled: Tensor) -> Tensor:
    """Count the midpoints between levels that lie below each value: one pass a midpoint, all of them vectorised."""
    book = code_book()
    above = torch.empty(len(scaled), dtype=torch.bool)
    codes = torch.zeros(len(scaled), dtype=torch.uint8)
    for midpoint in ((book[:-1] + book[1:]) / 2).tolist():
        codes += torch.gt(scaled, midpoint, out=above).view(torch.uint8)
    return codes


def _pack(codes: Tensor) -> Tensor:
    if len(codes) % 2:
        codes = nn.functional.pad(codes, (0, 1), value=_ZERO)
    return (codes[0::2] << 4) | codes[1::2]
