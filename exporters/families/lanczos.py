"""Pillow's Lanczos resize of eight-bit pictures as matrix products, exactly, so that it can be part of a graph.

Pillow (`src/libImaging/Resample.c`) resizes one axis after the other with integer coefficients of 22 bits, and rounds
to whole levels after each; an axis that keeps its size is not touched. Which axis is first depends on the sizes and on
Pillow's version, so that is found by trying.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import PIL.Image
import torch
from torch import Tensor, nn

_LOBES = 3.0
_COEFFICIENT_BITS = 22  # 32 less 8 for the pixel and 2 for what overlapping lobes add
_LOW_BITS = 11


class Lanczos(nn.Module):
    """Resizes a float image of whole levels 0–255, [1, C, h, w] to [1, C, H, W]."""

    across: Tensor | None
    down: Tensor | None

    def __init__(self, source: tuple[int, int], target: tuple[int, int]) -> None:
        super().__init__()
        down, across = (_matrix(*sizes) for sizes in zip(source, target, strict=True))
        self.register_buffer("across", None if across is None else across.T.contiguous(), persistent=False)
        self.register_buffer("down", down, persistent=False)
        self.down_first = False
        self.down_first = self._differs_from_pillow(source, target)

    def forward(self, image: Tensor) -> Tensor:
        """Resize."""
        if self.down_first:
            return self._resize_across(self._resize_down(image))
        return self._resize_down(self._resize_across(image))

    def _resize_across(self, image: Tensor) -> Tensor:
        return image if self.across is None else _levels(image @ self.across, axis=-1)

    def _resize_down(self, image: Tensor) -> Tensor:
        return image if self.down is None else _levels(self.down @ image, axis=-2)

    def _differs_from_pillow(self, source: tuple[int, int], target: tuple[int, int]) -> bool:
        """Tell whether noise comes out otherwise than from Pillow, with the axes in the present order."""
        if self.across is None or self.down is None:
            return False
        noise = np.random.default_rng(0).integers(0, 256, source, dtype=np.uint8)
        expected = PIL.Image.fromarray(noise).resize(target[::-1], PIL.Image.Resampling.LANCZOS)
        found = self(torch.from_numpy(noise[None, None].astype(np.float32)))[0, 0]
        return not np.array_equal(found.numpy(), np.array(expected))


def coefficients(source: int, target: int) -> npt.NDArray[np.int64]:
    """Return Pillow's weights of the source's pixels in the target's, [target, source], in units of 2⁻²²."""
    scale = source / target
    stretch = max(scale, 1.0)
    centres = (np.arange(target) + 0.5) * scale
    first = np.maximum((centres - _LOBES * stretch + 0.5).astype(int), 0)
    last = np.minimum((centres + _LOBES * stretch + 0.5).astype(int), source)
    pixels = np.arange(source)
    seen = (pixels >= first[:, None]) & (pixels < last[:, None])
    weights = np.where(seen, _kernel((pixels - centres[:, None] + 0.5) / stretch), 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(np.trunc(weights * (1 << _COEFFICIENT_BITS) + np.copysign(0.5, weights)), dtype=np.int64)


def _matrix(source: int, target: int) -> Tensor | None:
    """Return the upper halves of the coefficients and below them the lower ones, [2 target, source].

    Apart, because then float32 holds all products with pixels and their sums exactly, in whatever order they are added.
    None where nothing is to be done.
    """
    if source == target:
        return None
    high, low = np.divmod(coefficients(source, target), 1 << _LOW_BITS)
    both = np.concatenate([high * (1 << _LOW_BITS), low]) / (1 << _COEFFICIENT_BITS)
    return torch.from_numpy(both.astype(np.float32))


def _kernel(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where((x >= -_LOBES) & (x < _LOBES), np.sinc(x) * np.sinc(x / _LOBES), 0.0)


def _levels(sums: Tensor, axis: int) -> Tensor:
    """Round upper and lower sums to whole levels; what the lower ones have below the upper ones' last bit decides
    nothing."""
    high, low = sums.chunk(2, dim=axis)
    unit = float(1 << (_COEFFICIENT_BITS - _LOW_BITS))
    return (high + (low * unit).floor() / unit + 0.5).floor().clamp(0, 255)
