"""DreamLite's networks as modules with plain tensors at their boundary."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from exporters.families.stable_diffusion_graphs import Decoder


class Denoiser(nn.Module):
    """The U-Net for one branch: it sees the source image's latents to the right of those that it denoises."""

    time_ids: Tensor

    def __init__(self, unet: Any, height: int, width: int) -> None:
        super().__init__()
        self.unet = unet
        self.register_buffer("time_ids", torch.tensor([[width, height]], dtype=torch.float32), persistent=False)

    def forward(
        self, latents: Tensor, timestep: Tensor, source_latents: Tensor, text_states: Tensor, text_mask: Tensor
    ) -> Tensor:
        """Predict from latents of both pictures [1, C, h, w], timestep [1], text states [1, L, D] and the mask of those
        that count, int32 [1, L]."""
        prediction: Tensor = self.unet(
            torch.cat([latents, source_latents], dim=3),
            timestep,
            encoder_hidden_states=text_states,
            encoder_attention_mask=text_mask,
            added_cond_kwargs={"time_ids": self.time_ids},
            return_dict=False,
        )[0]
        return prediction[..., : latents.shape[3]]


class ShiftedDecoder(Decoder):
    """Latents to a float image of 0–255, with the shift that this pipeline adds."""

    def __init__(self, vae: Any) -> None:
        super().__init__(vae)
        self.shift_factor: float = getattr(vae.config, "shift_factor", None) or 0.0

    def forward(self, latents: Tensor) -> Tensor:
        """Decode [1, C, h, w] and clamp."""
        return super().forward(latents + self.shift_factor * self.scaling_factor)


class NoPicture(nn.Module):
    """What a text alone gives the language model in a picture's place: zeros [k, N, D]."""

    def __init__(self, features: int, image_tokens: int) -> None:
        super().__init__()
        self.features, self.image_tokens = features, image_tokens

    def forward(self, inputs_embeds: Tensor) -> Tensor:
        """Make zeros that follow from embeddings [1, L, D], because constant ones would be stored in the graph."""
        return (inputs_embeds[:, : self.image_tokens] * 0).repeat(self.features, 1, 1)


class WithPicture(nn.Module):
    """Puts image embeddings in the place of the image tokens'."""

    def __init__(self, image_start: int) -> None:
        super().__init__()
        self.image_start = image_start

    def forward(self, inputs_embeds: Tensor, image_embeds: Tensor) -> Tensor:
        """Merge [1, L, D] and [N, D]."""
        after = self.image_start + image_embeds.shape[0]
        return torch.cat([inputs_embeds[:, : self.image_start], image_embeds[None], inputs_embeds[:, after:]], dim=1)
