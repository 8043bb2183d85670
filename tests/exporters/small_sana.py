"""A seeded random SANA-Sprint pipeline of the real classes, small enough to export in seconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from diffusers import AutoencoderDC, SanaSprintPipeline, SanaTransformer2DModel, SCMScheduler
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import nn
from transformers import Gemma2Config, Gemma2Model, GemmaTokenizer

from exporters.families.sana_sprint import INSTRUCTION
from profiler.records.spec import Licence, ModelSpec, TaskDefaults

SIDE = 32
# Smaller than any prompt with its instruction, so that half of the layers see a window.
SLIDING_WINDOW = 64
_WIDTH, _LATENT_CHANNELS = 64, 8
_SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]


def save_sana(
    folder: Path, *, seed: int = 0, encoder_layers: int = 2, dtype: torch.dtype = torch.float32, **transformer: Any
) -> Path:
    """Build a pipeline with random weights and save it as `dtype`; `transformer` replaces options of its network."""
    torch.manual_seed(seed)
    tokenizer = build_gemma_tokenizer()
    pipeline = SanaSprintPipeline(
        tokenizer=tokenizer,
        text_encoder=_text_encoder(len(tokenizer), encoder_layers),
        vae=_autoencoder(),
        transformer=_transformer(**transformer),
        scheduler=SCMScheduler(prediction_type="trigflow", sigma_data=0.5),
    )
    pipeline.to(dtype).save_pretrained(folder, safe_serialization=True)
    return folder


def sana_spec(folder: Path, **settings: Any) -> ModelSpec:
    """Describe a saved pipeline as a registry entry would."""
    chosen: dict[str, Any] = {"prompt": "a red square", "steps": 2, "text_guidance": 4.5, "seed": 3, **settings}
    return ModelSpec(
        name="small_sana",
        title="Small random SANA-Sprint",
        family="sana_sprint",
        repo=str(folder),
        licence=Licence(name="Apache-2.0", commercial_use="allowed"),
        height=SIDE,
        width=SIDE,
        tasks={"generate": TaskDefaults(**chosen)},
    )


def build_gemma_tokenizer() -> GemmaTokenizer:
    """Build a Gemma tokenizer whose merges are learnt from the instruction; it pads left until it is told not to."""
    learnt = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    learnt.normalizer = normalizers.Replace(" ", "▁")
    learnt.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    special = [*_SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    learnt.train_from_iterator(
        [INSTRUCTION], trainers.BpeTrainer(vocab_size=900, special_tokens=special, show_progress=False)
    )
    model = json.loads(learnt.to_str())["model"]
    tokenizer = GemmaTokenizer(vocab=model["vocab"], merges=[tuple(merge) for merge in model["merges"]])
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", tokenizer.bos_token_id)]
    )
    return tokenizer


def _text_encoder(vocabulary: int, layers: int) -> Gemma2Model:
    config = Gemma2Config(
        vocab_size=vocabulary,
        hidden_size=_WIDTH,
        intermediate_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=SLIDING_WINDOW,
        max_position_embeddings=1024,
        attn_implementation="eager",
    )
    encoder = Gemma2Model(config)
    # Fresh logits are far below the cap of 50, and fresh norms hide that Gemma's weights are added to one.
    _amplify(encoder, "q_proj", 20.0)
    _scatter(encoder, "norm.weight", 0.3)
    return encoder.eval()


def _transformer(**options: Any) -> SanaTransformer2DModel:
    transformer = SanaTransformer2DModel(
        **{
            "in_channels": _LATENT_CHANNELS,
            "out_channels": _LATENT_CHANNELS,
            "num_attention_heads": 4,
            "attention_head_dim": 8,
            "num_layers": 2,
            "num_cross_attention_heads": 2,
            "cross_attention_head_dim": 16,
            "cross_attention_dim": 32,
            "caption_channels": _WIDTH,
            "qk_norm": "rms_norm_across_heads",
            "guidance_embeds": True,
            "guidance_embeds_scale": 0.1,
            **options,
        }
    )
    # What fresh weights do with the text is otherwise too faint for a comparison to notice.
    _amplify(transformer, "attn2.to_out.0", 8.0)
    _amplify(transformer, "proj_out", 3.0)
    return transformer.eval()


def _autoencoder() -> AutoencoderDC:
    blocks, widths, scales = ["ResBlock", "EfficientViTBlock", "EfficientViTBlock"], (8, 16, 16), ((), (5,), (5,))
    autoencoder = AutoencoderDC(
        latent_channels=_LATENT_CHANNELS,
        attention_head_dim=8,
        encoder_block_types=blocks,
        decoder_block_types=blocks,
        encoder_block_out_channels=widths,
        decoder_block_out_channels=widths,
        encoder_layers_per_block=(1, 1, 1),
        decoder_layers_per_block=(1, 1, 1),
        encoder_qkv_multiscales=scales,
        decoder_qkv_multiscales=scales,
        upsample_block_type="interpolate",
        downsample_block_type="Conv",
        scaling_factor=0.41407,
    )
    return autoencoder.eval()


@torch.no_grad()
def _amplify(network: nn.Module, ending: str, factor: float) -> None:
    for name, module in network.named_modules():
        if name.endswith(ending):
            for weights in module.parameters():
                weights.mul_(factor)


@torch.no_grad()
def _scatter(network: nn.Module, ending: str, spread: float) -> None:
    for name, weights in network.named_parameters():
        if name.endswith(ending):
            weights.add_(torch.randn_like(weights) * spread)
