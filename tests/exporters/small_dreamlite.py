"""Seeded random DreamLite pipelines of the real classes, small enough to export in seconds, saved as real ones are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import torch
from diffusers import (
    AutoencoderTiny,
    DreamLiteMobilePipeline,
    DreamLitePipeline,
    DreamLiteUNetModel,
    FlowMatchEulerDiscreteScheduler,
)
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers
from torch import nn
from transformers import Qwen2Tokenizer, Qwen2VLImageProcessorPil, Qwen3VLConfig, Qwen3VLForConditionalGeneration
from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

from exporters.families.picture_processor import PictureProcessor
from profiler.records.spec import Licence, ModelSpec, TaskDefaults

SIDE = 64
WIDTH = 64  # of the text encoder: whole blocks of NF4
PATCH, MERGE = 64, 2  # so that the 512 × 512 picture is 16 tokens
IMAGE_TOKENS = (512 // PATCH // MERGE) ** 2
DEEP = 2
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
           "<|video_pad|>")  # fmt: skip
Kind = Literal["base", "mobile"]
CLASSES: dict[Kind, Any] = {"base": DreamLitePipeline, "mobile": DreamLiteMobilePipeline}


def build_pipeline(kind: Kind = "mobile", seed: int = 0, levels: int = 2, deep: int = DEEP) -> Any:
    """Build a pipeline with random weights, its U-Net of one or two resolutions, its encoders of `deep` + 1 layers."""
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    pipeline = CLASSES[kind](
        text_encoder=_text_encoder(tokenizer, deep),
        tokenizer=tokenizer,
        processor=PictureProcessor(image_processor(PATCH), tokenizer),
        vae=_autoencoder(),
        unet=_unet(levels),
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
    )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def save_pipeline(folder: Path, kind: Kind = "mobile", seed: int = 0, levels: int = 2, deep: int = DEEP) -> Path:
    """Save a pipeline in the layout and float type of the published ones; the same seed gives the same files."""
    pipeline = build_pipeline(kind, seed, levels, deep)
    for name in ("text_encoder", "unet", "vae"):
        getattr(pipeline, name).bfloat16().save_pretrained(folder / name)
    for name in ("scheduler", "tokenizer"):
        getattr(pipeline, name).save_pretrained(folder / name)
    pipeline.processor.image_processor.save_pretrained(folder / "processor")
    pipeline.tokenizer.save_pretrained(folder / "processor")
    index = {
        "_class_name": CLASSES[kind].__name__,
        "processor": ["transformers", "Qwen3VLProcessor"],
        "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
        "text_encoder": ["transformers", "Qwen3VLForConditionalGeneration"],
        "tokenizer": ["transformers", "Qwen2Tokenizer"],
        "unet": ["diffusers", "DreamLiteUNetModel"],
        "vae": ["diffusers", "AutoencoderTiny"],
    }
    (folder / "model_index.json").write_text(json.dumps(index))
    return folder


def build_tokenizer() -> Qwen2Tokenizer:
    """Build a byte-level tokenizer that has the words of the pipeline's templates, as Qwen's has."""
    trained = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated")
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trained.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=900, initial_alphabet=alphabet, show_progress=False)
    trained.train_from_iterator(_template_texts(), trainer)
    model = json.loads(trained.to_str())["model"]
    return Qwen2Tokenizer(
        vocab=model["vocab"],
        merges=[tuple(pair) for pair in model["merges"]],
        extra_special_tokens=list(SPECIAL),
        model_max_length=4096,
    )


def _template_texts() -> list[str]:
    nothing: dict[str, Any] = dict.fromkeys(("text_encoder", "tokenizer", "processor", "vae", "unet", "scheduler"))
    empty = DreamLiteMobilePipeline(**nothing)
    texts = [empty.prompt_template_encode_generate, empty.prompt_template_encode_edit]
    for token in SPECIAL:
        texts = [text.replace(token, "\n\n") for text in texts]
    return [*texts, *texts]


def _text_encoder(tokenizer: Qwen2Tokenizer, deep: int) -> Qwen3VLForConditionalGeneration:
    ids = {f"{name}_token_id": tokenizer.convert_tokens_to_ids(f"<|{token}|>") for name, token in _TOKENS.items()}
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": WIDTH,
            "intermediate_size": 2 * WIDTH,
            "num_hidden_layers": deep + 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 4096,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 5000000.0,
                "mrope_section": [4, 2, 2],
                "mrope_interleaved": True,
            },
        },
        vision_config={
            "depth": deep + 1,
            "hidden_size": WIDTH,
            "intermediate_size": 2 * WIDTH,
            "num_heads": 4,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "out_hidden_size": WIDTH,
            "num_position_embeddings": 25,
            "deepstack_visual_indexes": list(range(deep)),
        },
        tie_word_embeddings=True,
        **ids,
    )
    encoder = Qwen3VLForConditionalGeneration(config).eval().requires_grad_(False)
    _amplify(encoder.model, 6.0)
    return encoder


_TOKENS = {"image": "image_pad", "video": "video_pad", "vision_start": "vision_start", "vision_end": "vision_end"}


def image_processor(patch: int) -> Qwen2VLImageProcessorPil:
    """Return Qwen3-VL's settings for pictures, for patches of some size."""
    half = [0.5, 0.5, 0.5]
    limits = {"shortest_edge": 65536, "longest_edge": 16777216}
    return Qwen2VLImageProcessorPil(
        patch_size=patch, merge_size=MERGE, temporal_patch_size=2, image_mean=half, image_std=half, size=limits
    )


def _unet(levels: int) -> DreamLiteUNetModel:
    unet = DreamLiteUNetModel(
        sample_size=SIDE // 8,
        block_out_channels=(16, 32)[:levels],
        down_block_types=("DreamLiteCrossAttnNoSelfAttnDownBlock2D", "DreamLiteCrossAttnDownBlock2D")[:levels],
        up_block_types=("DreamLiteUpBlock2D", "DreamLiteCrossAttnNoSelfAttnUpBlock2D")[:levels],
        layers_per_block=1,
        norm_num_groups=8,
        cross_attention_dim=32,
        attention_head_dim=(2, 4)[:levels],
        encoder_hid_dim=WIDTH,
        encoder_hid_dim_type="text_proj_rms",
        addition_embed_type="time",
        addition_time_embed_dim=16,
        projection_class_embeddings_input_dim=32,
    )
    _amplify(unet.conv_out, 3.0)
    for name, module in unet.named_modules():
        if name.endswith("attn2.to_out.0"):
            _amplify(module, 8.0)
    return unet.eval().requires_grad_(False)


def _autoencoder() -> AutoencoderTiny:
    widths, blocks = (16, 16, 16, 16), (1, 1, 1, 1)
    autoencoder = AutoencoderTiny(
        encoder_block_out_channels=widths,
        decoder_block_out_channels=widths,
        num_encoder_blocks=blocks,
        num_decoder_blocks=blocks,
        scaling_factor=0.9,
        shift_factor=0.1,
    )
    _amplify(autoencoder.encoder.layers[-1], 20.0)
    _amplify(autoencoder.decoder.layers[-1], 10.0)
    return autoencoder.eval().requires_grad_(False)


@torch.no_grad()
def _amplify(network: nn.Module, factor: float) -> None:
    """Scale layers up: what fresh weights do to an image is otherwise too faint for a comparison to notice."""
    for name, weights in network.named_parameters():
        if "norm" not in name:
            weights.mul_(factor)


def spec_of(folder: Path, kind: Kind) -> ModelSpec:
    """Describe a saved pipeline as a registry entry would."""
    guided: dict[str, Any] = (
        {"text_guidance": 2.5, "negative_prompt": "blue"} if kind == "base" else {"text_guidance": 1.0}
    )
    image: dict[str, Any] = {"image_guidance": 1.4} if kind == "base" else {}
    return ModelSpec(
        name=f"small-dreamlite-{kind}",
        title="Small random DreamLite",
        family="dreamlite",
        repo=str(folder),
        licence=Licence(name="Apache-2.0", commercial_use="allowed"),
        height=SIDE,
        width=SIDE,
        tasks={
            "generate": TaskDefaults(prompt="a red cat", steps=3, seed=3, **guided),
            "edit": TaskDefaults(prompt="a hat", steps=3, seed=4, **guided, **image),
        },
    )
