"""Sampling: prompts and edits through the stock InstructPix2Pix pipeline, one seeded noise per sample."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
import torch
from diffusers import StableDiffusionInstructPix2PixPipeline

from scripts.nano.drawing import Image

BATCH = 50


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How images are sampled."""

    steps: int
    text_guidance: float
    image_guidance: float


def load_pipeline(folder: Path) -> StableDiffusionInstructPix2PixPipeline:
    """Load the exported folder with the stock pipeline, in single precision."""
    pipeline = StableDiffusionInstructPix2PixPipeline.from_pretrained(
        folder, safety_checker=None, torch_dtype=torch.float32, local_files_only=True
    )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def sample_images(
    pipeline: StableDiffusionInstructPix2PixPipeline,
    texts: list[str],
    sources: list[Image],
    sampling: Sampling,
    seed: int,
) -> list[Image]:
    """Sample one image per text and source; sample i has noise of seed `seed + i`, whatever the batch size."""
    images: list[Image] = []
    for start in range(0, len(texts), BATCH):
        part = slice(start, start + BATCH)
        count = len(texts[part])
        generators = [torch.Generator().manual_seed(seed + start + offset) for offset in range(count)]
        output = pipeline(
            prompt=texts[part],
            image=[PIL.Image.fromarray(source) for source in sources[part]],
            num_inference_steps=sampling.steps,
            guidance_scale=sampling.text_guidance,
            image_guidance_scale=sampling.image_guidance,
            generator=generators,
        )
        images += [np.asarray(image, np.uint8) for image in output.images]
    return images
