"""DreamLite pipelines, the guided one and the distilled one for phones, taken apart for export."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import PIL.Image
import torch
from diffusers import DreamLiteMobilePipeline
from diffusers.pipelines.dreamlite.pipeline_dreamlite import calculate_shift
from torch import Tensor, nn
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

from exporters.families.dreamlite_conditioning import Conditioner
from exporters.families.dreamlite_parts import PICTURE_SIDE, Layout, parts_of
from exporters.families.picture_processor import load_processor
from exporters.guidance import ZERO_LATENTS
from exporters.networks import Networks
from exporters.parts import Model, Reference, ReferenceInputs
from exporters.sources import Subfolders
from profiler.errors import InputError, InternalError
from profiler.records.bundle import PromptForm
from profiler.records.plan import Constant
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

NAME = "dreamlite"
SUBFOLDERS = Subfolders(networks=("text_encoder", "unet", "vae"), settings=("scheduler", "tokenizer", "processor"))
PIPELINES = GUIDED, DISTILLED = "DreamLitePipeline", "DreamLiteMobilePipeline"
_PIXELS = 1024
# Tokens that the language model takes, for both tasks: 34 + 200 of a generation with its template; 64 + 256 of an
# edit's template and picture, 33 of the words put around its prompt, and 95 of the prompt.
LENGTH = 448
# The pipelines' own default for how many tokens of a prompt they keep when generating.
_KEPT_TOKENS = 200
# Most of what the pipelines put around a prompt themselves; only stand-in tokenizers are told.
_WORDS = (
    "[Generate]: [Edit]: A diptych with two side-by-side images of the same scene. Compared to the right side, the "
    "left one has Transfer this image to oil-painting style."
)


def defaults_of(folder: Path) -> tuple[int, dict[Task, TaskDefaults]]:
    """Return the pipelines' own image side and settings."""
    guided = Networks(folder).check_pipeline(*PIPELINES) == GUIDED
    steps, text, image = (28, 3.5, 1.5) if guided else (4, 1.0, None)
    generate = TaskDefaults(prompt="a close-up of a dragon spitting fire", steps=steps, text_guidance=text)
    edit = TaskDefaults(prompt="make it look like winter", steps=steps, text_guidance=text, image_guidance=image)
    return _PIXELS, {"generate": generate, "edit": edit}


def load(networks: Networks, recipe: Recipe) -> Model:
    """Take a pipeline folder apart. Raises InputError where it cannot be expressed."""
    guided = networks.check_pipeline(*PIPELINES) == GUIDED
    pipeline = _open_pipeline(networks)
    _check(pipeline, networks.folder)
    prompts = _prompts(pipeline)
    layout = _layout(pipeline, recipe, prompts["edit"])
    positions: dict[Task, Tensor] = {"generate": torch.arange(LENGTH).repeat(3, 1), "edit": layout.position_ids}
    conditioner = Conditioner(
        guided=guided,
        length=LENGTH,
        image=layout.image,
        position_ids={task: _int_constant(ids) for task, ids in positions.items()},
    )
    return Model(
        title=f"diffusers {diffusers.__version__} {networks.pipeline}, float32 eager PyTorch on the CPU",
        parts=parts_of(pipeline, layout, networks),
        scheduler=type(pipeline.scheduler).__name__,
        schedulers=partial(scheduler_for, pipeline.scheduler, layout.latents),
        tokenizer=pipeline.tokenizer,
        prompt_length=LENGTH,
        prompts=prompts,
        image=layout.image,
        latents=layout.latents,
        tasks=("generate", "edit"),
        most_branches=3 if guided else 1,
        condition=conditioner.condition,
        run_reference=partial(run_reference, pipeline),
        constants={ZERO_LATENTS: lambda: np.zeros((1, *layout.latents), np.float32)},
    )


def templates() -> tuple[str, ...]:
    """Return the texts that stand around prompts, for a tokenizer that has to do without the real one's words."""
    empty = DreamLiteMobilePipeline(**dict.fromkeys((*SUBFOLDERS.networks, *SUBFOLDERS.settings)))
    return (empty.prompt_template_encode_generate, empty.prompt_template_encode_edit, _WORDS)


def scheduler_for(scheduler: Any, latents: tuple[int, int, int], steps: int) -> Any:
    """Return a fresh scheduler with the pipelines' noise levels for a step count and latents [C, h, w]."""
    made = type(scheduler).from_config(scheduler.config)
    limits = {
        "base_seq_len": made.config.get("base_image_seq_len", 256),
        "max_seq_len": made.config.get("max_image_seq_len", 4096),
        "base_shift": made.config.get("base_shift", 0.5),
        "max_shift": made.config.get("max_shift", 1.16),
    }
    shift = calculate_shift(latents[1] * latents[2] // 4, **limits)
    made.set_timesteps(sigmas=np.linspace(1.0, 1 / steps, steps), mu=shift)
    return made


def run_reference(pipeline: Any, inputs: ReferenceInputs) -> Reference:
    """Make one image with the pipeline's own loop."""
    settings = inputs.settings
    picture = None if inputs.source_image is None else PIL.Image.fromarray(inputs.source_image)
    height, width = (size * pipeline.vae_scale_factor for size in inputs.noise.shape[2:])
    with _starting_from(pipeline, torch.from_numpy(inputs.noise.copy())):
        image = pipeline(
            prompt=settings.prompt,
            image=picture,
            height=height,
            width=width,
            num_inference_steps=settings.steps,
            output_type="np",
            **(_guidance(inputs) if type(pipeline).__name__ == GUIDED else {}),
        ).images[0]
    float_image = np.ascontiguousarray(image.transpose(2, 0, 1)[None] * 255, dtype=np.float32)
    return Reference(float_image, np.zeros((settings.steps, *inputs.noise.shape[1:]), np.float32))


def _guidance(inputs: ReferenceInputs) -> dict[str, Any]:
    settings = inputs.settings
    image = 1.0 if settings.image_guidance is None else settings.image_guidance
    return {
        "negative_prompt": settings.negative_prompt,
        "guidance_scale": settings.text_guidance,
        "image_guidance_scale": image,
    }


@contextlib.contextmanager
def _starting_from(pipeline: Any, noise: Tensor) -> Iterator[None]:
    """Give the pipeline its first latents, which its call has no argument for."""
    pipeline.prepare_latents = lambda *_, **__: noise
    try:
        yield
    finally:
        del pipeline.prepare_latents


def _open_pipeline(networks: Networks) -> Any:
    """Put the stock pipeline together; its networks' weights need not be there yet."""
    parts = {name: networks.module(name) for name in SUBFOLDERS.networks}
    parts |= {name: networks.setting(name) for name in ("scheduler", "tokenizer")}
    # The head makes 151,936 logits a token, which the pipeline does not read.
    parts["text_encoder"].lm_head = nn.Identity()
    processor = load_processor(networks.folder / "processor", parts["tokenizer"])
    pipeline = getattr(diffusers, networks.pipeline)(**parts, processor=processor)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def _check(pipeline: Any, folder: Path) -> None:
    channels, unet = pipeline.vae.config.latent_channels, pipeline.unet.config
    if unet.in_channels != channels or unet.out_channels != channels:
        raise InputError(f"{folder}: the U-Net takes {unet.in_channels} channels, its pipeline feeds {channels}")
    if unet.addition_embed_type not in (None, "time"):
        raise InputError(f"{folder}: a U-Net with addition_embed_type={unet.addition_embed_type!r} is not supported")
    settings, vision = pipeline.processor.image_processor, pipeline.text_encoder.config.vision_config
    if (settings.patch_size, settings.merge_size) != (vision.patch_size, vision.spatial_merge_size):
        raise InputError(f"{folder}: the processor cuts other patches than the vision tower takes")
    least, most = settings.size["shortest_edge"], settings.size["longest_edge"]
    found = smart_resize(PICTURE_SIDE, PICTURE_SIDE, settings.patch_size * settings.merge_size, least, most)
    if settings.do_resize and found != (PICTURE_SIDE, PICTURE_SIDE):
        raise InputError(
            f"{folder}: the processor resizes pictures to {found}, {PICTURE_SIDE} × {PICTURE_SIDE} is known"
        )


def _prompts(pipeline: Any) -> Mapping[Task, PromptForm]:
    generate, edit = pipeline.prompt_template_encode_generate, pipeline.prompt_template_encode_edit
    hidden = pipeline.prompt_template_encode_generate_start_idx
    token = pipeline.processor.image_token
    edit = edit.replace(token, token * _image_tokens(pipeline))
    picture = PIL.Image.new("RGB", (pipeline.vae_scale_factor,) * 2)
    return {
        "generate": PromptForm(
            template=generate.format(_wrapped(pipeline, None)),
            negative_template=generate.format("{prompt}"),
            limit=hidden + _KEPT_TOKENS,
            hidden=hidden,
        ),
        "edit": PromptForm(
            template=edit.format(_wrapped(pipeline, picture)),
            negative_template=edit.format("{prompt}"),
            cut=False,
            hidden=pipeline.prompt_template_encode_edit_start_idx,
        ),
    }


class _Asked(Exception):
    """Carries what a pipeline was about to encode."""


def _wrapped(pipeline: Any, picture: PIL.Image.Image | None) -> str:
    """Return what the pipeline's call makes of `{prompt}` before it is put in the template."""

    def stop(*, prompts: list[str], **_: Any) -> None:
        raise _Asked(prompts[-1])

    pipeline.encode_prompt = stop
    try:
        pipeline(prompt="{prompt}", image=picture)
    except _Asked as asked:
        return str(asked.args[0])
    finally:
        del pipeline.encode_prompt
    raise InternalError(f"{type(pipeline).__name__} encodes no prompt")


def _image_tokens(pipeline: Any) -> int:
    vision = pipeline.text_encoder.config.vision_config
    return int((PICTURE_SIDE // vision.patch_size // vision.spatial_merge_size) ** 2)


def _layout(pipeline: Any, recipe: Recipe, edit: PromptForm) -> Layout:
    scale, unit = pipeline.vae_scale_factor, 2 * pipeline.vae_scale_factor
    if recipe.height % unit or recipe.width % unit:
        raise InputError(f"{recipe.height}×{recipe.width} is not a multiple of {unit}, which the pipeline rounds to")
    tokens = pipeline.tokenizer(edit.template).input_ids
    count, start = _image_tokens(pipeline), tokens.index(pipeline.processor.image_token_id)
    if len(tokens) > LENGTH:
        raise InputError(f"an edit's template is {len(tokens)} tokens long; at most {LENGTH} are supported")
    return Layout(
        image=(3, recipe.height, recipe.width),
        latents=(pipeline.vae.config.latent_channels, recipe.height // scale, recipe.width // scale),
        length=LENGTH,
        image_start=start,
        image_tokens=count,
        hidden=edit.hidden,
        position_ids=_edit_positions(pipeline, start, count),
    )


def _edit_positions(pipeline: Any, start: int, count: int) -> Tensor:
    """Return where tokens are in time, height and width, int32 [3, L], as the model itself says."""
    kinds = torch.zeros(1, LENGTH, dtype=torch.int64)
    kinds[:, start : start + count] = 1
    grid = PICTURE_SIDE // pipeline.text_encoder.config.vision_config.patch_size
    positions, _ = pipeline.text_encoder.model.get_rope_index(
        torch.zeros(1, LENGTH, dtype=torch.int64), kinds, image_grid_thw=torch.tensor([[1, grid, grid]])
    )
    found: Tensor = positions[:, 0].to(torch.int32)
    return found


def _int_constant(values: Tensor) -> Constant:
    return Constant(dtype="int32", shape=tuple(values.shape), values=tuple(values.flatten().tolist()))
