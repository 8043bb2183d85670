"""Classifier-free guidance as a weighted sum of denoiser branches."""

from __future__ import annotations

from typing import NamedTuple

from profiler.errors import InputError
from profiler.records.plan import Guidance

# Values of a plan: the image latents that stand for "no source image" in generation, and in guidance.
BLANK_LATENTS, ZERO_LATENTS = "blank_latents", "zero_latents"


class Branch(NamedTuple):
    """One denoiser call of a round and its share in the prediction; `source` names the image latents it sees."""

    name: str
    text: str
    source: str | None
    weight: float


def text_branches(guidance: Guidance) -> tuple[Branch, ...]:
    """Return g · text + (1 − g) · negative; a scale up to 1 means no guidance, as in diffusers."""
    if guidance.image is not None:
        raise InputError("image guidance was given, but this model sees no source image", hint="Leave it out.")
    if guidance.text <= 1:
        return (Branch("text", "text_states", None, 1.0),)
    return (
        Branch("text", "text_states", None, guidance.text),
        Branch("negative", "negative_states", None, 1 - guidance.text),
    )


def source_branches(guidance: Guidance, source: str) -> tuple[Branch, ...]:
    """Return InstructPix2Pix's sum (Brooks et al. 2023, eq. 3) as weights g, i − g, 1 − i.

    At i = 1 the branch without an image weighs nothing and is not called. Raises InputError for i < 1, which
    diffusers takes as "no guidance at all".
    """
    text, image = guidance.text, 1.0 if guidance.image is None else guidance.image
    if image < 1:
        raise InputError(f"image guidance {image} is below 1, which this model's pipeline does not know")
    if text <= 1:
        return (Branch("text", "text_states", source, 1.0),)
    branches = (
        Branch("text", "text_states", source, text),
        Branch("image", "negative_states", source, image - text),
        Branch("blank", "negative_states", ZERO_LATENTS, 1 - image),
    )
    return branches[:2] if image == 1 else branches
