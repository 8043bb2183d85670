"""Pool: training examples whose latents are computed once, so that diffusion training never runs the autoencoder."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from diffusers import AutoencoderTiny
from safetensors.torch import load_file, save_file
from torch import Tensor

from scripts.nano.autoencoder import to_tensor
from scripts.nano.drawing import blank_image, draw
from scripts.nano.edits import EDIT_OPS, Edit, sample_edit
from scripts.nano.scenes import Scene, sample_scene

log = logging.getLogger(__name__)

ENCODE_BATCH = 64


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Scenes and edits beside the latents [n, 12, 8, 8] of their images."""

    scenes: list[Scene]
    scene_latents: Tensor
    edits: list[Edit]
    source_latents: Tensor
    target_latents: Tensor
    blank_latents: Tensor


def sample_scenes(seed: int, count: int) -> list[Scene]:
    """Draw training scenes at random, three in four with two figures."""
    rng = Random(f"{seed}/pool/scenes")
    return [sample_scene(rng, rng.choice((1, 2, 2, 2)), "train") for _ in range(count)]


def sample_edits(seed: int, count: int) -> list[Edit]:
    """Draw training edits at random, every kind equally often."""
    rng = Random(f"{seed}/pool/edits")
    return [sample_edit(rng, EDIT_OPS[index % len(EDIT_OPS)], "train") for index in range(count)]


@torch.no_grad()
def _encode_scenes(autoencoder: AutoencoderTiny, scenes: list[Scene]) -> Tensor:
    parts = []
    for start in range(0, len(scenes), ENCODE_BATCH):
        images = to_tensor([draw(scene) for scene in scenes[start : start + ENCODE_BATCH]])
        with torch.autocast("cpu", torch.bfloat16):
            parts.append(autoencoder.encode(images).latents.half())
        if len(parts) % 100 == 0:
            log.info("pool: %d of %d images encoded", start + ENCODE_BATCH, len(scenes))
    return torch.cat(parts)


@torch.no_grad()
def _encode_pool(autoencoder: AutoencoderTiny, scenes: list[Scene], edits: list[Edit]) -> dict[str, Tensor]:
    return {
        "scenes": _encode_scenes(autoencoder, scenes),
        "sources": _encode_scenes(autoencoder, [edit.source for edit in edits]),
        "targets": _encode_scenes(autoencoder, [edit.target for edit in edits]),
        "blank": autoencoder.encode(to_tensor([blank_image()])).latents,
    }


def load_pool(path: Path, autoencoder: AutoencoderTiny, seed: int, scene_count: int, edit_count: int) -> Pool:
    """Read the pool's latents from a file, computing them first if the file is missing; its records are resampled."""
    scenes, edits = sample_scenes(seed, scene_count), sample_edits(seed, edit_count)
    if not path.exists():
        latents = _encode_pool(autoencoder, scenes, edits)
        # Convolutions may return a channels-last layout, which cannot be saved.
        save_file({name: tensor.contiguous() for name, tensor in latents.items()}, path)
    latents = load_file(path)
    if (len(latents["scenes"]), len(latents["sources"])) != (scene_count, edit_count):
        raise ValueError(f"{path} holds a pool of another size; delete it and run again")
    return Pool(
        scenes=scenes,
        scene_latents=latents["scenes"],
        edits=edits,
        source_latents=latents["sources"],
        target_latents=latents["targets"],
        blank_latents=latents["blank"],
    )
