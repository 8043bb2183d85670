"""Stable Diffusion pipelines, with or without a source image, taken apart for export."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import PIL.Image
import torch
import transformers

from exporters.families.stable_diffusion_graphs import Decoder, Denoiser, ImageEncoder, SourceDenoiser, TextEncoder
from exporters.parts import Graph, Model, Part, Reference, ReferenceInputs, read_json
from exporters.quiet import quiet
from exporters.schedules import DrawnNoise
from exporters.sources import Subfolders
from profiler.errors import InputError, first_line
from profiler.records.recipe import Recipe
from profiler.records.record import Task

NAME = "stable_diffusion"
SUBFOLDERS = Subfolders(networks=("text_encoder", "unet", "vae"), settings=("scheduler", "tokenizer"))
GENERATES, EDITS = "StableDiffusionPipeline", "StableDiffusionInstructPix2PixPipeline"
# Generation through an edit model starts from this grey, encoded: a source inside the autoencoder's domain. Nano is
# trained on exactly this level (scripts/nano/drawing.py).
BLANK_GREY = 127
_LIBRARIES = ("diffusers", "transformers")
_LEFT_OUT = ("safety_checker", "feature_extractor", "image_encoder")
_UNSUPPORTED_UNET = ("class_embed_type", "addition_embed_type", "encoder_hid_dim_type", "time_cond_proj_dim")
_LOAD_ERRORS = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError)


def tasks_of(folder: Path) -> tuple[Task, ...]:
    """Tell from a pipeline folder's index what the pipeline is for. Raises InputError for other classes."""
    return ("edit",) if pipeline_class(folder) == EDITS else ("generate",)


def pipeline_class(folder: Path) -> str:
    """Read and check a pipeline folder's index. Raises InputError for classes or code from elsewhere."""
    path = folder / "model_index.json"
    if not path.is_file():
        raise InputError(f"{folder} is not a diffusers pipeline ({path.name} is not there)")
    index = read_json(path)
    name = index.get("_class_name")
    if name not in (GENERATES, EDITS):
        raise InputError(f"{folder} holds a {name}; supported are {GENERATES} and {EDITS}")
    for part in (*SUBFOLDERS.networks, *SUBFOLDERS.settings):
        library = (index.get(part) or [None])[0]
        if library not in _LIBRARIES:
            raise InputError(f"{path}: {part} comes from {library!r}; remote or missing code is never loaded")
    return str(name)


def load(folder: Path, recipe: Recipe) -> Model:
    """Load a pipeline folder in float32 and take it apart. Raises InputError where it cannot be expressed."""
    edits = pipeline_class(folder) == EDITS
    pipeline = _load_pipeline(folder, EDITS if edits else GENERATES)
    _check(pipeline, edits, folder)
    latents = _latent_shape(pipeline, recipe)
    image = (3, recipe.height, recipe.width)
    return Model(
        title=f"diffusers {diffusers.__version__} {type(pipeline).__name__}, float32 eager PyTorch on the CPU",
        parts={part.name: part for part in _parts(pipeline, edits, image, latents)},
        scheduler=pipeline.scheduler,
        tokenizer=pipeline.tokenizer,
        prompt_length=pipeline.tokenizer.model_max_length,
        image=image,
        latents=latents,
        takes_source=edits,
        blank_source=np.full((*image[1:], 3), BLANK_GREY, np.uint8) if edits else None,
        tasks=("generate", "edit") if edits else ("generate",),
        run_reference=partial(run_reference, pipeline),
    )


def run_reference(pipeline: Any, inputs: ReferenceInputs) -> Reference:
    """Make one image with the pipeline's own loop."""
    settings = inputs.settings
    drawn = _DrawnPerRound(inputs.noise.shape[1:])
    image = pipeline(
        prompt=settings.prompt,
        negative_prompt=settings.negative_prompt,
        num_inference_steps=settings.steps,
        guidance_scale=settings.text_guidance,
        latents=torch.from_numpy(inputs.noise.copy()),
        generator=drawn.generator,
        output_type="np",
        callback_on_step_end=drawn.end_round,
        **_image_arguments(inputs, pipeline.vae_scale_factor),
    ).images[0]
    float_image = np.ascontiguousarray(image.transpose(2, 0, 1)[None] * 255, dtype=np.float32)
    return Reference(float_image, np.stack(drawn.rounds))


class _DrawnPerRound:
    """Notes the noise that a pipeline's scheduler draws, through the pipeline's own callback."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.generator = torch.Generator().manual_seed(0)
        self.rounds: list[Any] = []
        self._shape = shape
        self._drawn = DrawnNoise(self.generator)

    def end_round(self, pipeline: Any, number: int, timestep: Any, values: dict[str, Any]) -> dict[str, Any]:
        """Note one round's noise."""
        self.rounds.append(self._drawn.since_last(self._shape).numpy())
        return values


def _image_arguments(inputs: ReferenceInputs, scale: int) -> dict[str, Any]:
    if inputs.source_image is None:
        return {"height": inputs.noise.shape[2] * scale, "width": inputs.noise.shape[3] * scale}
    image_guidance = inputs.settings.image_guidance
    picture = PIL.Image.fromarray(inputs.source_image)
    return {"image": picture, "image_guidance_scale": 1.0 if image_guidance is None else image_guidance}


def _load_pipeline(folder: Path, name: str) -> Any:
    try:
        with quiet(), _no_progress_bars():
            pipeline = getattr(diffusers, name).from_pretrained(
                folder,
                dtype=torch.float32,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                requires_safety_checker=False,
                **dict.fromkeys(_LEFT_OUT),
            )
    except _LOAD_ERRORS as error:
        raise InputError(f"cannot load the {name} in {folder}: {first_line(error)}") from error
    pipeline.set_progress_bar_config(disable=True)
    for module in (pipeline.text_encoder, pipeline.unet, pipeline.vae):
        module.eval().requires_grad_(False)
    return pipeline


@contextlib.contextmanager
def _no_progress_bars() -> Iterator[None]:
    both: tuple[Any, ...] = (diffusers.utils.logging, transformers.utils.logging)
    for logging in both:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        for logging in both:
            logging.enable_progress_bar()


def _check(pipeline: Any, edits: bool, folder: Path) -> None:
    if getattr(pipeline.text_encoder.config, "use_attention_mask", False):
        raise InputError(f"{folder}: a text encoder with use_attention_mask is not supported")
    length, positions = pipeline.tokenizer.model_max_length, pipeline.text_encoder.config.max_position_embeddings
    if length > positions:
        raise InputError(f"{folder}: the tokenizer pads to {length} tokens, the text encoder takes {positions}")
    config = pipeline.unet.config
    for option in _UNSUPPORTED_UNET:
        if config.get(option) is not None:
            raise InputError(f"{folder}: a U-Net with {option}={config[option]!r} is not supported")
    expected = pipeline.vae.config.latent_channels * (2 if edits else 1)
    if config.in_channels != expected:
        raise InputError(f"{folder}: the U-Net takes {config.in_channels} channels, its pipeline feeds {expected}")


def _latent_shape(pipeline: Any, recipe: Recipe) -> tuple[int, int, int]:
    scale = pipeline.vae_scale_factor
    if recipe.height % scale or recipe.width % scale:
        raise InputError(f"{recipe.height}×{recipe.width} is not a multiple of {scale}, which the autoencoder needs")
    return (pipeline.vae.config.latent_channels, recipe.height // scale, recipe.width // scale)


def _parts(pipeline: Any, edits: bool, image: tuple[int, int, int], latents: tuple[int, int, int]) -> list[Part]:
    length, width = pipeline.tokenizer.model_max_length, pipeline.unet.config.cross_attention_dim
    text_states, timestep = _normal(1, length, width), torch.tensor([500.0])
    ids = torch.arange(length, dtype=torch.int32)[None] % pipeline.text_encoder.config.vocab_size
    seen = {"latents": _normal(1, *latents)} | ({"source_latents": _normal(1, *latents)} if edits else {})
    unet = (SourceDenoiser if edits else Denoiser)(pipeline.unet)
    picture = {"source_image": _normal(1, *image).mul(64).add(128).clamp(0, 255)}
    parts = [
        _part("text_encoder", "encode", TextEncoder(pipeline.text_encoder), {"input_ids": ids}, "text_states"),
        _part("denoiser", "predict", unet, {**seen, "timestep": timestep, "text_states": text_states}, "prediction"),
        _part("decoder", "decode", Decoder(pipeline.vae), {"latents": _normal(1, *latents)}, "image"),
    ]
    encoder = _part("image_encoder", "encode", ImageEncoder(pipeline.vae), picture, "source_latents")
    return [*parts, encoder] if edits else parts


def _part(name: str, function: str, module: torch.nn.Module, inputs: dict[str, torch.Tensor], output: str) -> Part:
    return Part(name=name, graphs={function: Graph(module=module.eval(), inputs=inputs, outputs=(output,))})


def _normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
