"""Stable Diffusion's networks as modules with plain tensors at their boundary."""

from __future__ import annotations

from typing import Any

import torch
from diffusers import AutoencoderKL, AutoencoderTiny
from torch import Tensor, nn

from profiler.errors import InputError


class TextEncoder(nn.Module):
    """Token ids int32 [1, L] to the last hidden state [1, L, D]."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, input_ids: Tensor) -> Tensor:
        """Encode without an attention mask, as the stock pipelines do."""
        states: Tensor = self.encoder(input_ids, attention_mask=None)[0]
        return states


class Denoiser(nn.Module):
    """The U-Net for one branch; no guidance, no scheduler."""

    def __init__(self, unet: nn.Module) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, latents: Tensor, timestep: Tensor, text_states: Tensor) -> Tensor:
        """Predict from scaled latents [1, C, h, w], timestep [1] and text states [1, L, D]."""
        prediction: Tensor = self.unet(latents, timestep, encoder_hidden_states=text_states, return_dict=False)[0]
        return prediction


class GuidedDenoiser(Denoiser):
    """The U-Net of a consistency model, which embeds how strong its guidance is."""

    def __init__(self, unet: Any) -> None:
        super().__init__(unet)
        half = unet.config.time_cond_proj_dim // 2
        # As the pipeline computes them, once: angles are up to 1000 times the guidance, and the last bit of an
        # exponential would show in their sines. In a tuple, because a buffer would be made half with the weights.
        self._frequencies = (torch.exp(torch.arange(half) * -(torch.log(torch.tensor(10000.0)) / (half - 1))),)

    def forward(  # type: ignore[override]
        self, latents: Tensor, timestep: Tensor, text_states: Tensor, guidance: Tensor
    ) -> Tensor:
        """Predict with guidance [1], which is 0 for none."""
        angles = (guidance * 1000.0)[:, None] * self._frequencies[0]
        embedded = torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)
        prediction: Tensor = self.unet(
            latents,
            timestep,
            timestep_cond=embedded.to(text_states.dtype),
            encoder_hidden_states=text_states,
            return_dict=False,
        )[0]
        return prediction


class SourceDenoiser(Denoiser):
    """The U-Net of an edit model, which sees the source image's latents in further channels."""

    def forward(  # type: ignore[override]
        self, latents: Tensor, source_latents: Tensor, timestep: Tensor, text_states: Tensor
    ) -> Tensor:
        """Predict with source latents [1, C, h, w], which are never scaled."""
        return super().forward(torch.cat([latents, source_latents], dim=1), timestep, text_states)


class ImageEncoder(nn.Module):
    """A float image of 0–255 to latents: the distribution's mode, not scaled, as InstructPix2Pix takes them."""

    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.latent_channels: int = vae.config.latent_channels
        self.network = nn.Sequential(*_halves(vae)[0])

    def forward(self, source_image: Tensor) -> Tensor:
        """Encode [1, 3, H, W]; a KL autoencoder's first half of channels is the mode."""
        moments: Tensor = self.network(source_image / 255 * 2 - 1)
        return moments[:, : self.latent_channels]


class Decoder(nn.Module):
    """Latents to a float image of 0–255."""

    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.scaling_factor: float = vae.config.scaling_factor
        self.network = nn.Sequential(*_halves(vae)[1])

    def forward(self, latents: Tensor) -> Tensor:
        """Decode [1, C, h, w] and clamp."""
        image: Tensor = self.network(latents / self.scaling_factor)
        return (image * 0.5 + 0.5).clamp(0, 1) * 255


def _halves(vae: Any) -> tuple[list[nn.Module], list[nn.Module]]:
    if isinstance(vae, AutoencoderTiny):
        return [vae.encoder], [vae.decoder]
    if isinstance(vae, AutoencoderKL):
        encode = [vae.encoder, *([vae.quant_conv] if vae.quant_conv is not None else [])]
        return encode, [*([vae.post_quant_conv] if vae.post_quant_conv is not None else []), vae.decoder]
    raise InputError(f"autoencoder {type(vae).__name__} is not supported; AutoencoderKL and AutoencoderTiny are")
