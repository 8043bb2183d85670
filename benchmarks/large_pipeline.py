"""A random pipeline of Stable Diffusion's kind, large enough that a call costs what a real model's does."""

from __future__ import annotations

from pathlib import Path

import torch
from diffusers import AutoencoderTiny, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from exporters.pipeline import export
from profiler.bundle_files import MANIFEST
from profiler.records.recipe import Recipe
from profiler.records.spec import Licence, ModelSpec, TaskDefaults

IMAGE_SIDE = 256
LATENT_SIDE = IMAGE_SIDE // 8
STEPS = 2
_TEXT_WIDTH = 256
_WIDTHS = (128, 256, 384, 384)  # 59 M parameters in the U-Net
_BEGIN, _END = "<|startoftext|>", "<|endoftext|>"


def large_bundle(work: Path) -> Path:
    """Return the bundle in `work`, made there first where it is missing (a minute or two)."""
    bundle = work / f"large-{'-'.join(map(str, _WIDTHS))}-{STEPS}"
    if not (bundle / MANIFEST).is_file():
        source = work / "large_pipeline"
        _pipeline().save_pretrained(source, safe_serialization=True)
        export(_spec(source), Recipe(height=IMAGE_SIDE, width=IMAGE_SIDE), bundle)
    return bundle


def _spec(source: Path) -> ModelSpec:
    return ModelSpec(
        name="large_random",
        title="Random weights, for benchmarks of the runner only",
        family="stable_diffusion",
        repo=str(source.absolute()),
        licence=Licence(name="Apache-2.0", commercial_use="allowed"),
        height=IMAGE_SIDE,
        width=IMAGE_SIDE,
        tasks={"generate": TaskDefaults(prompt="noise", steps=STEPS, text_guidance=3.0)},
    )


def _pipeline() -> StableDiffusionPipeline:
    torch.manual_seed(0)
    tokenizer = _tokenizer()
    return StableDiffusionPipeline(
        vae=AutoencoderTiny(encoder_block_out_channels=(32,) * 4, decoder_block_out_channels=(32,) * 4).eval(),
        text_encoder=_text_encoder(tokenizer),
        tokenizer=tokenizer,
        unet=large_unet(),
        scheduler=DDIMScheduler(
            beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False, steps_offset=1
        ),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def large_unet() -> UNet2DConditionModel:
    """Build its U-Net."""
    stages = len(_WIDTHS)
    return UNet2DConditionModel(
        sample_size=LATENT_SIDE,
        block_out_channels=_WIDTHS,
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D",) * (stages - 1) + ("DownBlock2D",),
        up_block_types=("UpBlock2D",) + ("CrossAttnUpBlock2D",) * (stages - 1),
        cross_attention_dim=_TEXT_WIDTH,
    ).eval()


def _text_encoder(tokenizer: CLIPTokenizer) -> CLIPTextModel:
    config = CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=_TEXT_WIDTH,
        intermediate_size=4 * _TEXT_WIDTH,
        num_hidden_layers=4,
        num_attention_heads=4,
        max_position_embeddings=77,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return CLIPTextModel(config).eval()


def _tokenizer() -> CLIPTokenizer:
    """Build a tokenizer that knows bytes only."""
    characters = [chr(code) for code in (*range(33, 127), *range(161, 173), *range(174, 256))]
    characters += [chr(256 + index) for index in range(256 - len(characters))]
    tokens = [*characters, *(character + "</w>" for character in characters), _BEGIN, _END]
    return CLIPTokenizer(vocab={token: i for i, token in enumerate(tokens)}, merges=[], model_max_length=77)
