"""Autoencoder stage: images to 8×8×12 latents of zero mean and unit deviation and back."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import numpy as np
import torch
from diffusers import AutoencoderTiny
from torch import Tensor, nn
from torch.nn import functional

from scripts.nano.drawing import SIDE, Image, blank_image, draw
from scripts.nano.scenes import BACKGROUNDS, PLACES, Scene, random_figure, sample_scene
from scripts.nano.stages import Draw, Settings

LATENT_NOISE = 0.05
FIGURE_WEIGHT = 4.0
MOMENT_WEIGHT = 0.02
NORMALISE_SHARE = 0.75


def to_tensor(images: list[Image]) -> Tensor:
    """Turn uint8 images into a [n, 3, 64, 64] tensor of -1 to 1."""
    stacked = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)
    return stacked.float() / 127.5 - 1


def _crowded_scene(rng: Random) -> Scene:
    """Draw a scene with a figure in most places: the code is local, so one crowd teaches as much as five scenes."""
    places = [place for place in PLACES if rng.random() < 0.8]
    figures = tuple(random_figure(rng, place) for place in places)
    return Scene(figures=figures, background=rng.choice(tuple(BACKGROUNDS)))


def _real_image(rng: Random) -> Image:
    return draw(sample_scene(rng, rng.choice((1, 2, 2)), "train"))


def _training_image(rng: Random) -> Image:
    if (kind := rng.random()) < 0.03:
        return blank_image()
    if kind < 0.05:  # any flat colour: keeps the code smooth between the palette's points
        return np.full((SIDE, SIDE, 3), [rng.randrange(256) for _ in range(3)], np.uint8)
    return draw(_crowded_scene(rng)) if kind < 0.65 else _real_image(rng)


def _pixel_weights(images: Tensor) -> Tensor:
    """Weigh figures and their rims above the flat background, which would otherwise drown them."""
    background = images.flatten(2).median(dim=2).values[..., None, None]
    figures = ((images - background).abs().amax(1, keepdim=True) > 0.05).float()
    return 1 + (FIGURE_WEIGHT - 1) * functional.max_pool2d(figures, 5, stride=1, padding=2)


def _reconstruction_loss(autoencoder: AutoencoderTiny, latents: Tensor, images: Tensor, draw: Draw) -> Tensor:
    """Compute the weighted error of decoding slightly noised latents."""
    noisy = latents + LATENT_NOISE * torch.randn(latents.shape, generator=draw.torch)
    with torch.autocast("cpu", torch.bfloat16):
        errors = autoencoder.decode(noisy).sample.float() - images
    weighted: Tensor = _pixel_weights(images) * (0.5 * errors.abs() + 2 * errors.square())
    return weighted.mean()


class AutoencoderStage:
    """Train encoder and decoder together, then fold the latents' moments into the encoder and finish the decoder."""

    name = "autoencoder"

    def __init__(self, autoencoder: AutoencoderTiny, settings: Settings) -> None:
        self.settings = settings
        self.normalise_at = int(settings.steps * NORMALISE_SHARE)
        self.autoencoder = autoencoder
        self.modules: dict[str, nn.Module] = {"autoencoder": autoencoder}
        self.averages: dict[str, nn.Module] = {}

    def rate_of(self, module: str, step: int) -> float:
        """Train all modules at the stage's rate."""
        return 1.0

    def loss(self, step: int, draw: Draw) -> tuple[Tensor, dict[str, float]]:
        """Compute the reconstruction loss, with a pull of the latents towards unit moments."""
        images = to_tensor([_training_image(draw.rng) for _ in range(self.settings.batch)])
        if step == self.normalise_at:
            self._fold_moments(draw)
        with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(step < self.normalise_at):
            latents = self.autoencoder.encode(images).latents.float()
        deviation, mean = torch.std_mean(latents, dim=(0, 2, 3))
        moments = (mean.square() + (deviation - 1).square()).mean()
        reconstruction = _reconstruction_loss(self.autoencoder, latents, images, draw)
        return reconstruction + MOMENT_WEIGHT * moments, {"deviation": deviation.mean().item()}

    @torch.no_grad()
    def _fold_moments(self, draw: Draw) -> None:
        """Scale the last encoder layer so that each channel has mean 0 and deviation 1 (pix2pix scales nothing)."""
        images = to_tensor([_real_image(draw.rng) for _ in range(256)])
        deviation, mean = torch.std_mean(self.autoencoder.encode(images).latents, dim=(0, 2, 3))
        last = self.autoencoder.encoder.layers[-1]
        last.weight.div_(deviation[:, None, None, None])
        last.bias.sub_(mean).div_(deviation)


class DecoderStage:
    """Go on training the decoder alone: the latents stay, so that diffusion training need not wait for it."""

    name = "decoder"

    def __init__(self, autoencoder: AutoencoderTiny, settings: Settings) -> None:
        self.settings = settings
        self.autoencoder = autoencoder
        self.modules: dict[str, nn.Module] = {"decoder": autoencoder.decoder}
        self.averages: dict[str, nn.Module] = {"decoder": deepcopy(autoencoder.decoder)}

    def rate_of(self, module: str, step: int) -> float:
        """Train all modules at the stage's rate."""
        return 1.0

    def loss(self, step: int, draw: Draw) -> tuple[Tensor, dict[str, float]]:
        """Compute the reconstruction loss from the fixed encoder's latents."""
        images = to_tensor([_training_image(draw.rng) for _ in range(self.settings.batch)])
        with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
            latents = self.autoencoder.encode(images).latents.float()
        return _reconstruction_loss(self.autoencoder, latents, images, draw), {}
