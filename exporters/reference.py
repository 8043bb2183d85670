"""What a source pipeline's own loop made, taken from its public interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from exporters.parts import Reference
from exporters.schedules import DrawnNoise


class DrawnPerRound:
    """Notes the noise that a pipeline's scheduler draws, through the pipeline's own callback."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.generator = torch.Generator().manual_seed(0)
        self._rounds: list[npt.NDArray[np.float32]] = []
        self._shape = shape
        self._drawn = DrawnNoise(self.generator)

    def end_round(self, pipeline: Any, number: int, timestep: Any, values: dict[str, Any]) -> dict[str, Any]:
        """Note one round's noise; what a pipeline takes as callback_on_step_end."""
        self._rounds.append(self._drawn.since_last(self._shape).numpy())
        return values

    def reference(self, image: npt.NDArray[np.float32]) -> Reference:
        """Return an image [H, W, 3] of 0–1, as output_type="np" gives it, with the noise of all rounds."""
        return Reference(
            np.ascontiguousarray(image.transpose(2, 0, 1)[None] * 255, dtype=np.float32), np.stack(self._rounds)
        )
