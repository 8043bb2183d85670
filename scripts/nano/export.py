"""Export: trained checkpoints to a half-precision diffusers folder that the stock InstructPix2Pix pipeline loads."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from diffusers import StableDiffusionInstructPix2PixPipeline
from transformers import CLIPTokenizer

from scripts.nano.checkpoint import load_modules
from scripts.nano.networks import build_autoencoder, build_scheduler, build_text_encoder, build_unet
from scripts.nano.tokens import build_tokenizer, write_standalone


def assemble_pipeline(work: Path) -> StableDiffusionInstructPix2PixPipeline:
    """Build the pipeline from the encoder's weights and the averaged ones of the decoder and diffusion stages."""
    tokenizer = build_tokenizer()
    autoencoder, encoder, unet = build_autoencoder(), build_text_encoder(tokenizer), build_unet()
    load_modules(work / "autoencoder.safetensors", {"autoencoder": autoencoder})
    load_modules(work / "decoder.safetensors", {"ema_decoder": autoencoder.decoder})
    load_modules(work / "diffusion.safetensors", {"ema_text_encoder": encoder, "ema_unet": unet})
    return StableDiffusionInstructPix2PixPipeline(
        vae=autoencoder.eval(),
        text_encoder=encoder.eval(),
        tokenizer=tokenizer,
        unet=unet.eval(),
        scheduler=build_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    )


def _write_tokenizer(tokenizer: CLIPTokenizer, folder: Path) -> None:
    """Complete the tokenizer's files: the standalone one, and vocabulary and merges for transformers below 5."""
    write_standalone(tokenizer, folder / "tokenizer.json")
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    (folder / "vocab.json").write_text(json.dumps(model["vocab"], ensure_ascii=False))
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))


def _set_default_precision(config: Path) -> None:
    """Let transformers load the text encoder in single precision, as diffusers does the rest, unless told otherwise."""
    values = json.loads(config.read_text())
    config.write_text(json.dumps({**values, "dtype": "float32"}, indent=2) + "\n")


def export_pipeline(pipeline: StableDiffusionInstructPix2PixPipeline, folder: Path) -> None:
    """Write a pipeline in half precision, by rename so that a reader sees the old folder or the new one."""
    partial, old = folder.with_name(folder.name + ".partial"), folder.with_name(folder.name + ".old")
    for leftover in (partial, old):
        shutil.rmtree(leftover, ignore_errors=True)
    pipeline.to(dtype=torch.float16).save_pretrained(partial, safe_serialization=True)
    _write_tokenizer(pipeline.tokenizer, partial / "tokenizer")
    _set_default_precision(partial / "text_encoder/config.json")
    for path in partial.rglob("*.safetensors"):
        path.chmod(0o644)  # safetensors writes files that only their owner may read
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
