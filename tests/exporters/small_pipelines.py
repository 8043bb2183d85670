"""Seeded random pipelines, small enough to export in seconds, saved the way real ones are."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from diffusers import (
    AutoencoderKL,
    AutoencoderTiny,
    DDIMScheduler,
    LatentConsistencyModelPipeline,
    LCMScheduler,
    StableDiffusionInstructPix2PixPipeline,
    StableDiffusionPipeline,
    UNet2DConditionModel,
)
from torch import nn
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from profiler.records.recipe import Recipe
from profiler.records.spec import Licence, ModelSpec, TaskDefaults

SIDE = 32
PROMPT_LENGTH = 12
LATENT_CHANNELS = 4
BEGIN, END = "<|startoftext|>", "<|endoftext|>"
Kind = Literal["generate", "edit"]


def save_pipeline(
    folder: Path,
    kind: Kind = "generate",
    *,
    scheduler: Any = None,
    tiny_autoencoder: bool = True,
    encoder_layers: int = 2,
    seed: int = 0,
) -> Path:
    """Build a pipeline with random weights and save it; the same seed gives the same files."""
    torch.manual_seed(seed)
    cls = StableDiffusionInstructPix2PixPipeline if kind == "edit" else StableDiffusionPipeline
    pipeline = cls(
        vae=_tiny_autoencoder() if tiny_autoencoder else _kl_autoencoder(),
        text_encoder=_text_encoder(encoder_layers),
        tokenizer=build_tokenizer(),
        unet=_unet(LATENT_CHANNELS * (2 if kind == "edit" else 1)),
        scheduler=scheduler or sd_scheduler(DDIMScheduler, clip_sample=False, set_alpha_to_one=False, steps_offset=1),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.save_pretrained(folder, safe_serialization=True)
    return folder


def save_distilled(folder: Path, *, seed: int = 0, **unet: Any) -> Path:
    """Build a latent consistency model with random weights and save it."""
    torch.manual_seed(seed)
    network = _unet(LATENT_CHANNELS, **{"time_cond_proj_dim": 16, **unet})
    if network.config.time_cond_proj_dim:
        _amplify(network.time_embedding.cond_proj, 20.0)
    pipeline = LatentConsistencyModelPipeline(
        vae=_tiny_autoencoder(),
        text_encoder=_text_encoder(2),
        tokenizer=build_tokenizer(),
        unet=network,
        scheduler=sd_scheduler(LCMScheduler, clip_sample=False, set_alpha_to_one=True),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )
    pipeline.save_pretrained(folder, safe_serialization=True)
    return folder


def edited(source: Path, folder: Path, file: str, change: Callable[[dict[str, Any]], None]) -> Path:
    """Copy a pipeline folder with one of its JSON files changed."""
    shutil.copytree(source, folder)
    path = folder / file
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return folder


def sd_scheduler(cls: Any, **options: Any) -> Any:
    """Build a scheduler with Stable Diffusion's noise levels."""
    return cls(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", **options)


def build_tokenizer() -> CLIPTokenizer:
    """Build a byte-level CLIP tokenizer whose only merges spell "red"."""
    characters = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256))]
    characters += [chr(256 + index) for index in range(256 - len(characters))]
    merges = [("r", "e"), ("re", "d</w>")]
    tokens = [*characters, *(c + "</w>" for c in characters), *(a + b for a, b in merges), BEGIN, END]
    return CLIPTokenizer(
        vocab={token: index for index, token in enumerate(tokens)}, merges=merges, model_max_length=PROMPT_LENGTH
    )


def spec_of(folder: Path, *tasks: Kind, edit: dict[str, Any] | None = None, **settings: Any) -> ModelSpec:
    """Describe a saved pipeline as a registry entry would; `edit` are settings of the edit task alone."""
    chosen: dict[str, Any] = {"prompt": "a red square", "steps": 4, "text_guidance": 3.0, "seed": 3, **settings}
    own: dict[str, dict[str, Any]] = {"generate": {}, "edit": edit or {}}
    return ModelSpec(
        name="small",
        title="Small random pipeline",
        family="stable_diffusion",
        repo=str(folder),
        licence=Licence(name="Apache-2.0", commercial_use="allowed"),
        height=SIDE,
        width=SIDE,
        tasks={task: TaskDefaults(**{**chosen, **own[task]}) for task in tasks or ("generate",)},
    )


def small_recipe(**options: Any) -> Recipe:
    """Return the recipe for a small pipeline."""
    return Recipe(**{"height": SIDE, "width": SIDE, **options})


def _text_encoder(layers: int) -> CLIPTextModel:
    config = CLIPTextConfig(
        vocab_size=516,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        max_position_embeddings=PROMPT_LENGTH,
        bos_token_id=514,
        eos_token_id=515,
        pad_token_id=515,
    )
    return CLIPTextModel(config).eval()


def _unet(in_channels: int, **options: Any) -> UNet2DConditionModel:
    unet = UNet2DConditionModel(
        sample_size=SIDE // 8,
        in_channels=in_channels,
        out_channels=LATENT_CHANNELS,
        block_out_channels=(16, 32),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=32,
        attention_head_dim=4,
        norm_num_groups=8,
        **options,
    )
    _amplify(unet.conv_out, 3.0)
    for name, module in unet.named_modules():
        if name.endswith("attn2.to_out.0"):
            _amplify(module, 8.0)
    return unet.eval()


def _tiny_autoencoder() -> AutoencoderTiny:
    widths, blocks = (16, 16, 16, 16), (1, 1, 1, 1)
    autoencoder = AutoencoderTiny(
        latent_channels=LATENT_CHANNELS,
        encoder_block_out_channels=widths,
        decoder_block_out_channels=widths,
        num_encoder_blocks=blocks,
        num_decoder_blocks=blocks,
    )
    _amplify(autoencoder.encoder.layers[-1], 20.0)
    _amplify(autoencoder.decoder.layers[-1], 10.0)
    return autoencoder.eval()


def _kl_autoencoder() -> nn.Module:
    autoencoder: nn.Module = AutoencoderKL(
        block_out_channels=(8, 8, 16, 16),
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        layers_per_block=1,
        norm_num_groups=4,
        latent_channels=LATENT_CHANNELS,
    )
    return autoencoder.eval()


@torch.no_grad()
def _amplify(layer: nn.Module, factor: float) -> None:
    """Scale a layer up: what fresh weights do to an image is otherwise too faint for a comparison to notice."""
    for weights in layer.parameters():
        weights.mul_(factor)
