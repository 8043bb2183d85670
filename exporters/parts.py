"""What a family hands to an exporter: network parts as modules with example inputs, and the facts that plans need."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from exporters.conditioning import Conditioning
from exporters.quantize.held import count_weights
from exporters.schedules import Schedulers
from profiler.errors import InputError
from profiler.records.bundle import PromptForm
from profiler.records.recipe import EncoderScheme, Precision, Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Graph:
    """One function to export; `inputs` are examples in the order of the module's arguments, float32 or int32.

    `wide` says that values between its layers are beyond half precision, as a language model's that was trained in
    bfloat16: then a precision of fp16 is for what layers multiply, and for nothing else.
    """

    module: nn.Module
    inputs: Mapping[str, torch.Tensor]
    outputs: tuple[str, ...]
    wide: bool = False

    def run(self) -> tuple[torch.Tensor, ...]:
        """Run the module eagerly on its example inputs."""
        with torch.no_grad():
            results = self.module(*self.inputs.values())
        return results if isinstance(results, tuple) else (results,)


class Filler(Protocol):
    """Reads weights of modules in place."""

    @property
    def random(self) -> bool:
        """Tell whether they are drawn from a seed."""

    def fill(self, *modules: nn.Module) -> None:
        """Read them as float32."""

    def defer(self, *modules: nn.Module) -> None:
        """Read the small ones; layers read theirs each time they run."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One component to export.

    `encodes_text` says that a recipe's text-encoder scheme is for it. Where there is a `filler`, its weights may be
    absent, or still where they are stored, until `fill` was called.
    """

    name: str
    graphs: Mapping[str, Graph]
    encodes_text: bool = False
    filler: Filler | None = None

    def fill(self, recipe: Recipe) -> None:
        """Read the weights; of those that are to be coded, only what codes them will."""
        if self.filler is None:
            return
        coded = self.encodes_text and recipe.text_encoder != "fp32"
        (self.filler.defer if coded else self.filler.fill)(*self.modules)

    @property
    def random(self) -> bool:
        """Tell whether the weights are drawn from a seed."""
        return self.filler is not None and self.filler.random

    @property
    def parameters(self) -> int:
        """Count the weights, those that several functions share once."""
        return count_weights(self.modules)

    @property
    def modules(self) -> list[nn.Module]:
        """Return the functions' modules."""
        return [graph.module for graph in self.graphs.values()]

    def precision(self, recipe: Recipe) -> Precision | EncoderScheme:
        """Return how precise a recipe wants this part: text encoders have a scheme of their own, and arithmetic
        without weights stays exact."""
        if not self.parameters:
            return "fp32"
        return recipe.text_encoder if self.encodes_text else recipe.precision


class Reference(NamedTuple):
    """What the source's own loop made: the float image [1, 3, H, W] of 0–255, and the noise its scheduler drew.

    `step_noise` is [rounds, C, h, w], zero in rounds without noise.
    """

    image: Floats
    step_noise: Floats


@dataclass(frozen=True, kw_only=True)
class ReferenceInputs:
    """What the source's own loop is run on; `source_image` is uint8 [H, W, 3], or None for generation."""

    task: Task
    settings: TaskDefaults
    noise: Floats
    source_image: npt.NDArray[np.uint8] | None


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model taken apart.

    `image` and `latents` are (channels, height, width). `schedulers` gives the loop's scheduler for a step count, which
    plans name `scheduler`; `condition` says what happens before the loop and which denoiser calls a round makes, at
    most `most_branches`. `prompts` is how a task wraps its prompt before it is cut or padded to `prompt_length` tokens.
    `constants` makes the larger tensors that plans may bind, shared by all of them.
    """

    title: str
    parts: Mapping[str, Part]
    scheduler: str
    schedulers: Schedulers
    tokenizer: Any
    prompt_length: int
    prompts: Mapping[Task, PromptForm]
    image: tuple[int, int, int]
    latents: tuple[int, int, int]
    tasks: tuple[Task, ...]
    most_branches: int
    condition: Callable[[Task, TaskDefaults], Conditioning]
    run_reference: Callable[[ReferenceInputs], Reference]
    constants: Mapping[str, Callable[[], Floats]] = field(default_factory=dict)


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
