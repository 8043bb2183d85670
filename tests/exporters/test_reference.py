"""What a source pipeline's own loop made."""

from __future__ import annotations

import numpy as np
import torch

from exporters.reference import DrawnPerRound


def test_noise_is_noted_per_round_and_zero_where_none_was_drawn() -> None:
    drawn = DrawnPerRound((2, 4, 4))
    expected = torch.randn((1, 2, 4, 4), generator=drawn.generator)
    assert drawn.end_round(None, 0, None, {"latents": 1}) == {"latents": 1}
    drawn.end_round(None, 1, None, {})
    found = drawn.reference(np.zeros((8, 8, 3), np.float32)).step_noise
    np.testing.assert_array_equal(found, torch.cat([expected, torch.zeros(1, 2, 4, 4)]).numpy())


def test_the_image_comes_as_channels_of_0_to_255() -> None:
    drawn = DrawnPerRound((1, 1, 1))
    drawn.end_round(None, 0, None, {})
    rows = np.random.default_rng(0).random((2, 3, 3), dtype=np.float32)
    image = drawn.reference(rows).image
    assert image.shape == (1, 3, 2, 3)
    assert image[0, 2, 1, 0] == rows[1, 0, 2] * np.float32(255)
