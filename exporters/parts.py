"""What a family hands to an exporter: network parts as modules with example inputs, and the facts that plans need."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from exporters.quantize.held import count_weights
from profiler.errors import InputError
from profiler.records.recipe import EncoderScheme, Precision, Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

# The part that a recipe's text-encoder scheme is for, whatever the family.
TEXT_ENCODER = "text_encoder"

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Graph:
    """One function to export; `inputs` are examples in the order of the module's arguments, float32 or int32."""

    module: nn.Module
    inputs: Mapping[str, torch.Tensor]
    outputs: tuple[str, ...]

    def run(self) -> tuple[torch.Tensor, ...]:
        """Run the module eagerly on its example inputs."""
        with torch.no_grad():
            results = self.module(*self.inputs.values())
        return results if isinstance(results, tuple) else (results,)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One component to export."""

    name: str
    graphs: Mapping[str, Graph]

    @property
    def parameters(self) -> int:
        """Count the weights, those that several functions share once."""
        return count_weights(self.modules)

    @property
    def modules(self) -> list[nn.Module]:
        """Return the functions' modules."""
        return [graph.module for graph in self.graphs.values()]

    def precision(self, recipe: Recipe) -> Precision | EncoderScheme:
        """Return how precise a recipe wants this part: the text encoder has a scheme of its own, and arithmetic
        without weights stays exact."""
        if self.name == TEXT_ENCODER:
            return recipe.text_encoder
        return recipe.precision if self.parameters else "fp32"


class Reference(NamedTuple):
    """What the source's own loop made: the float image [1, 3, H, W] of 0–255, and the noise its scheduler drew.

    `step_noise` is [rounds, C, h, w], zero in rounds without noise.
    """

    image: Floats
    step_noise: Floats


@dataclass(frozen=True, kw_only=True)
class ReferenceInputs:
    """What the source's own loop is run on; `source_image` is uint8 [H, W, 3], or None for generation."""

    settings: TaskDefaults
    noise: Floats
    source_image: npt.NDArray[np.uint8] | None


@dataclass(frozen=True, kw_only=True)
class Model:
    """A loaded model, taken apart.

    `image` and `latents` are (channels, height, width). `takes_source` says that the denoiser sees a source image
    besides its latents; `blank_source`, uint8 [H, W, 3], stands for it when there is none.
    """

    title: str
    parts: Mapping[str, Part]
    scheduler: Any
    tokenizer: Any
    prompt_length: int
    image: tuple[int, int, int]
    latents: tuple[int, int, int]
    takes_source: bool
    blank_source: npt.NDArray[np.uint8] | None
    tasks: tuple[Task, ...]
    run_reference: Callable[[ReferenceInputs], Reference]


def image_tensor(pixels: npt.NDArray[np.uint8]) -> Floats:
    """Turn uint8 rows [H, W, 3] into a float image [1, 3, H, W] of 0–255."""
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], dtype=np.float32)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a model's folder. Raises InputError where the file holds none."""
    try:
        loaded = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a JSON file that can be read: {error}") from error
    if not isinstance(loaded, dict):
        raise InputError(f"{path} holds no JSON object")
    return loaded
