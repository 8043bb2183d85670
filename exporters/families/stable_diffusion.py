"""Stable Diffusion pipelines, with or without a source image, and their consistency models, taken apart for export."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import numpy.typing as npt
import PIL.Image
import torch

from exporters.families.stable_diffusion_conditioning import DISTILLED, EDITS, GENERATES, conditioning
from exporters.families.stable_diffusion_graphs import (
    Decoder,
    Denoiser,
    GuidedDenoiser,
    ImageEncoder,
    SourceDenoiser,
    TextEncoder,
)
from exporters.guidance import (
    BLANK_LATENTS,
    ZERO_LATENTS,
)
from exporters.networks import Networks
from exporters.parts import Floats, Graph, Model, Part, Reference, ReferenceInputs, image_tensor, read_json
from exporters.quiet import quiet
from exporters.reference import DrawnPerRound
from exporters.schedules import fresh
from exporters.sources import Subfolders
from profiler.errors import InputError
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

NAME = "stable_diffusion"
SUBFOLDERS = Subfolders(networks=("text_encoder", "unet", "vae"), settings=("scheduler", "tokenizer"))
# Generation through an edit model starts from this grey, encoded: a source inside the autoencoder's domain. Nano is
# trained on exactly this level (scripts/nano/drawing.py).
BLANK_GREY = 127
PIPELINES = (GENERATES, EDITS, DISTILLED)
_PROMPT = "a red apple on a wooden table, photograph"
_DEFAULTS: dict[str, tuple[Task, TaskDefaults]] = {
    GENERATES: ("generate", TaskDefaults(prompt=_PROMPT, steps=20, text_guidance=7.5)),
    DISTILLED: ("generate", TaskDefaults(prompt=_PROMPT, steps=4, text_guidance=8.5)),
    EDITS: ("edit", TaskDefaults(prompt="make it look like winter", steps=20, text_guidance=7.5, image_guidance=1.5)),
}
_MOST_BRANCHES = {GENERATES: 2, EDITS: 3, DISTILLED: 1}
_LEFT_OUT = ("safety_checker", "feature_extractor", "image_encoder")
_UNSUPPORTED_UNET = ("class_embed_type", "addition_embed_type", "encoder_hid_dim_type")


def defaults_of(folder: Path) -> tuple[int, dict[Task, TaskDefaults]]:
    """Return the image side that a U-Net was made for (its latents' times the autoencoder's scale), and its task."""
    unet, vae = _config(folder / "unet"), _config(folder / "vae")
    blocks = vae.get("block_out_channels") or vae.get("encoder_block_out_channels")
    sample = unet.get("sample_size")
    if not isinstance(sample, int) or sample < 1 or not blocks:
        raise InputError(f"{folder}: unet/config.json names no square sample_size, or vae/config.json no blocks")
    task, settings = _DEFAULTS[Networks(folder).check_pipeline(*PIPELINES)]
    return int(sample * 2 ** (len(blocks) - 1)), {task: settings}


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise InputError(f"{path} is not there; is this a diffusers pipeline folder?")
    return read_json(path)


def load(networks: Networks, recipe: Recipe) -> Model:
    """Take a pipeline folder apart. Raises InputError where it cannot be expressed."""
    edits = networks.check_pipeline(*PIPELINES) == EDITS
    pipeline = _open_pipeline(networks)
    _check(pipeline, networks.pipeline, networks.folder)
    latents = _latent_shape(pipeline, recipe)
    image = (3, recipe.height, recipe.width)
    parts = {part.name: replace(part, filler=networks) for part in _parts(pipeline, networks.pipeline, image, latents)}
    return Model(
        title=f"diffusers {diffusers.__version__} {networks.pipeline}, float32 eager PyTorch on the CPU",
        parts=parts,
        scheduler=type(pipeline.scheduler).__name__,
        schedulers=fresh(pipeline.scheduler),
        tokenizer=pipeline.tokenizer,
        prompt_length=pipeline.tokenizer.model_max_length,
        prompts={},
        image=image,
        latents=latents,
        tasks=("generate", "edit") if edits else ("generate",),
        most_branches=_MOST_BRANCHES[networks.pipeline],
        condition=conditioning(networks.pipeline, pipeline.tokenizer.model_max_length, image),
        run_reference=partial(run_reference, pipeline),
        constants=_source_constants(parts["image_encoder"], recipe) if edits else {},
    )


def _source_constants(encoder: Part, recipe: Recipe) -> dict[str, Callable[[], Floats]]:
    """Return the latents that stand for a source in generation, and the zeros of unguided branches."""

    def blank() -> Floats:
        encoder.fill(recipe)
        pixels = torch.from_numpy(image_tensor(blank_source(recipe.height, recipe.width)))
        with torch.no_grad():
            latents: Floats = encoder.graphs["encode"].module(pixels).numpy()
        return latents

    return {BLANK_LATENTS: blank, ZERO_LATENTS: lambda: np.zeros_like(blank())}


def blank_source(height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return what stands for a picture where there is none."""
    return np.full((height, width, 3), BLANK_GREY, np.uint8)


def run_reference(pipeline: Any, inputs: ReferenceInputs) -> Reference:
    """Make one image with the pipeline's own loop."""
    settings = inputs.settings
    drawn = DrawnPerRound(inputs.noise.shape[1:])
    image = pipeline(
        prompt=settings.prompt,
        num_inference_steps=settings.steps,
        guidance_scale=settings.text_guidance,
        latents=torch.from_numpy(inputs.noise.copy()),
        generator=drawn.generator,
        output_type="np",
        callback_on_step_end=drawn.end_round,
        **_own_arguments(type(pipeline).__name__, inputs, pipeline.vae_scale_factor),
    ).images[0]
    return drawn.reference(image)


def _own_arguments(pipeline: str, inputs: ReferenceInputs, scale: int) -> dict[str, Any]:
    """Return what the pipelines do not have in common."""
    height, width = (size * scale for size in inputs.noise.shape[2:])
    size = {"height": height, "width": width}
    negative = {"negative_prompt": inputs.settings.negative_prompt}
    if pipeline != EDITS:
        return size if pipeline == DISTILLED else {**size, **negative}
    source = blank_source(height, width) if inputs.source_image is None else inputs.source_image
    guidance = inputs.settings.image_guidance
    picture = {"image": PIL.Image.fromarray(source), "image_guidance_scale": 1.0 if guidance is None else guidance}
    return {**negative, **picture}


def _open_pipeline(networks: Networks) -> Any:
    """Put the stock pipeline together; its networks' weights need not be there yet."""
    cls = getattr(diffusers, networks.pipeline)
    with quiet():  # it corrects old schedulers' settings, and says so
        pipeline = cls(
            **{name: networks.module(name) for name in SUBFOLDERS.networks},
            **{name: networks.setting(name) for name in SUBFOLDERS.settings},
            **dict.fromkeys(_left_out(cls)),
            requires_safety_checker=False,
        )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def _left_out(cls: Any) -> tuple[str, ...]:
    return tuple(name for name in _LEFT_OUT if name in inspect.signature(cls).parameters)


def _check(pipeline: Any, name: str, folder: Path) -> None:
    if getattr(pipeline.text_encoder.config, "use_attention_mask", False):
        raise InputError(f"{folder}: a text encoder with use_attention_mask is not supported")
    length, positions = pipeline.tokenizer.model_max_length, pipeline.text_encoder.config.max_position_embeddings
    if length > positions:
        raise InputError(f"{folder}: the tokenizer pads to {length} tokens, the text encoder takes {positions}")
    config = pipeline.unet.config
    for option in _UNSUPPORTED_UNET:
        if config.get(option) is not None:
            raise InputError(f"{folder}: a U-Net with {option}={config[option]!r} is not supported")
    if (config.time_cond_proj_dim is not None) != (name == DISTILLED):
        raise InputError(f"{folder}: a U-Net with time_cond_proj_dim={config.time_cond_proj_dim} is no {name}'s")
    expected = pipeline.vae.config.latent_channels * (2 if name == EDITS else 1)
    if config.in_channels != expected:
        raise InputError(f"{folder}: the U-Net takes {config.in_channels} channels, its pipeline feeds {expected}")


def _latent_shape(pipeline: Any, recipe: Recipe) -> tuple[int, int, int]:
    scale = pipeline.vae_scale_factor
    if recipe.height % scale or recipe.width % scale:
        raise InputError(f"{recipe.height}×{recipe.width} is not a multiple of {scale}, which the autoencoder needs")
    return (pipeline.vae.config.latent_channels, recipe.height // scale, recipe.width // scale)


def _parts(pipeline: Any, name: str, image: tuple[int, int, int], latents: tuple[int, int, int]) -> list[Part]:
    length, width = pipeline.tokenizer.model_max_length, pipeline.unet.config.cross_attention_dim
    text_states, timestep = _normal(1, length, width), torch.tensor([500.0])
    ids = torch.arange(length, dtype=torch.int32)[None] % pipeline.text_encoder.config.vocab_size
    seen = {"latents": _normal(1, *latents)} | ({"source_latents": _normal(1, *latents)} if name == EDITS else {})
    seen |= {"timestep": timestep, "text_states": text_states}
    seen |= {"guidance": torch.tensor([7.5])} if name == DISTILLED else {}
    unet = _DENOISERS[name](pipeline.unet)
    picture = {"source_image": _normal(1, *image).mul(64).add(128).clamp(0, 255)}
    encode = _part("text_encoder", "encode", TextEncoder(pipeline.text_encoder), {"input_ids": ids}, "text_states")
    parts = [
        replace(encode, encodes_text=True),
        _part("denoiser", "predict", unet, seen, "prediction"),
        _part("decoder", "decode", Decoder(pipeline.vae), {"latents": _normal(1, *latents)}, "image"),
    ]
    encoder = _part("image_encoder", "encode", ImageEncoder(pipeline.vae), picture, "source_latents")
    return [*parts, encoder] if name == EDITS else parts


_DENOISERS = {GENERATES: Denoiser, EDITS: SourceDenoiser, DISTILLED: GuidedDenoiser}


def _part(name: str, function: str, module: torch.nn.Module, inputs: dict[str, torch.Tensor], output: str) -> Part:
    return Part(name=name, graphs={function: Graph(module=module.eval(), inputs=inputs, outputs=(output,))})


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
