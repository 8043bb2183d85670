"""The resize of pictures inside graphs, against Pillow's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from exporters.families.lanczos import Lanczos, coefficients


def picture(height: int, width: int) -> np.ndarray:
    """Draw noise over a gradient: overshoots at both ends, and values near a half."""
    noise = np.random.default_rng(height * width).integers(-90, 90, (height, width, 3))
    slope = np.linspace(0, 255, width)[None, :, None]
    return np.asarray((slope + noise).clip(0, 255), dtype=np.uint8)


@pytest.mark.parametrize(
    ("source", "target"),
    [((64, 64), (512, 512)), ((1024, 1024), (512, 512)), ((96, 512), (512, 512)), ((320, 200), (77, 333))],
    ids=["up", "down", "one axis", "rows first"],
)
def test_a_resized_picture_is_pillows(source: tuple[int, int], target: tuple[int, int]) -> None:
    pixels = picture(*source)
    expected = np.asarray(Image.fromarray(pixels).resize(target[::-1], Image.Resampling.LANCZOS))
    image = torch.from_numpy(pixels.transpose(2, 0, 1)[None].astype(np.float32))
    np.testing.assert_array_equal(Lanczos(source, target)(image)[0].permute(1, 2, 0).numpy(), expected)


def test_a_picture_of_the_right_size_is_left_alone() -> None:
    image = torch.rand(1, 3, 8, 8) * 255
    assert torch.equal(Lanczos((8, 8), (8, 8))(image), image)


def test_the_coefficients_of_a_pixel_add_up_to_one() -> None:
    np.testing.assert_allclose(coefficients(100, 37).sum(axis=1) / 2**22, 1, atol=1e-5)
