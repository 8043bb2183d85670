"""What a family does once an image before the denoising loop, and what each call in the loop sees of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from profiler.records.plan import Call, Constant, Port

# Job inputs that the product makes from words, in a plan where its ports ask for them; the picture comes after noise.
PROMPT_IDS, PROMPT_MASK = "prompt_ids", "prompt_mask"
NEGATIVE_IDS, NEGATIVE_MASK = "negative_ids", "negative_mask"
SOURCE_IMAGE = "source_image"


class Branch(NamedTuple):
    """One denoiser call of a round and its share in the prediction.

    `bind` maps the denoiser's ports, beside its latents and timestep, to the plan's values.
    """

    name: str
    weight: float
    bind: Mapping[str, str]


class Conditioning(NamedTuple):
    """A task's way from job inputs to the values that branches bind.

    `inputs` are the job's ports beside noise, `calls` run once an image before the loop, and `constants` are small
    tensors that the plan itself carries.
    """

    inputs: tuple[Port, ...]
    calls: tuple[Call, ...]
    branches: tuple[Branch, ...]
    constants: Mapping[str, Constant] = {}


def ids_port(name: str, length: int) -> Port:
    """Return the port of a prompt's token ids, or of their mask."""
    return Port(name=name, dtype="int32", shape=(1, length))
