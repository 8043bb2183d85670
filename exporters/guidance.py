"""Classifier-free guidance as a weighted sum of denoiser branches."""

from __future__ import annotations

from exporters.conditioning import Branch
from profiler.errors import InputError
from profiler.records.plan import Guidance
from profiler.records.spec import TaskDefaults

# Values of a plan: text states, and the image latents that stand for "no source image" in generation and in guidance.
TEXT_STATES, NEGATIVE_STATES = "text_states", "negative_states"
BLANK_LATENTS, ZERO_LATENTS = "blank_latents", "zero_latents"


def guidance_of(settings: TaskDefaults) -> Guidance:
    """Return a task's guidance scales."""
    return Guidance(text=settings.text_guidance, image=settings.image_guidance)


def text_branches(guidance: Guidance) -> tuple[Branch, ...]:
    """Return g · text + (1 − g) · negative; a scale up to 1 means no guidance, as in diffusers."""
    if guidance.image is not None:
        raise InputError("image guidance was given, but this model sees no source image", hint="Leave it out.")
    if guidance.text <= 1:
        return (Branch("text", 1.0, {"text_states": TEXT_STATES}),)
    return (
        Branch("text", guidance.text, {"text_states": TEXT_STATES}),
        Branch("negative", 1 - guidance.text, {"text_states": NEGATIVE_STATES}),
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
        return (_seeing("text", 1.0, TEXT_STATES, source),)
    branches = (
        _seeing("text", text, TEXT_STATES, source),
        _seeing("image", image - text, NEGATIVE_STATES, source),
        _seeing("blank", 1 - image, NEGATIVE_STATES, ZERO_LATENTS),
    )
    return branches[:2] if image == 1 else branches


def _seeing(name: str, weight: float, text: str, source: str) -> Branch:
    return Branch(name, weight, {"source_latents": source, "text_states": text})
