"""SANA-Sprint's networks as modules with plain tensors at their boundary."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

# Added to a masked logit. Gemma 2 caps logits at ±50 before masking, so that this is nothing after the softmax, and
# half precision holds it.
_MASKED = -10_000.0


class TextEncoder(nn.Module):
    """Gemma 2 on a prompt and its mask, int32 [1, L], to states [1, N, D] and their mask [1, N]: N of the L tokens.

    The layers are called one by one: the library's own way builds its masks by tracing a function over indices, which
    exporters do not know. They see no padding mask: padding is on the right, where no token of the prompt looks, and
    the states of padding are masked for the denoiser.
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, gemma: Any, length: int, kept: int) -> None:
        super().__init__()
        self.embedding, self.layers, self.norm = gemma.embed_tokens, gemma.layers, gemma.norm
        self.scale: float = gemma.config.hidden_size**0.5
        self.window: int = gemma.config.sliding_window
        self.slides = [kind == "sliding_attention" for kind in gemma.config.layer_types]
        self.kept = kept
        cos, sin = gemma.rotary_emb(torch.zeros(1), torch.arange(length)[None])
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        self.register_buffer("causal", causal_mask(length), persistent=False)
        if any(self.slides) and self.window < length:
            self.register_buffer("sliding", causal_mask(length, self.window), persistent=False)

    def forward(self, input_ids: Tensor, prompt_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Encode; keep the first token and the last N − 1, which leave out most of the instruction."""
        states = functional.embedding(input_ids, self.embedding.weight) * self.scale
        for layer, slides in zip(self.layers, self.slides, strict=True):
            mask = getattr(self, "sliding", self.causal) if slides else self.causal
            states = layer(states, position_embeddings=(self.cos, self.sin), attention_mask=mask)
        return self._keep(self.norm(states)), self._keep(prompt_mask.float())

    def _keep(self, values: Tensor) -> Tensor:
        return torch.cat([values[:, :1], values[:, 1 - self.kept :]], dim=1)


class Denoiser(nn.Module):
    """The linear transformer; guidance is embedded, so that one call makes a round's prediction."""

    def __init__(self, transformer: nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(
        self, latents: Tensor, timestep: Tensor, text_states: Tensor, text_mask: Tensor, guidance: Tensor
    ) -> Tensor:
        """Predict from scaled latents [1, C, h, w], timestep [1], states [1, N, D], mask [1, N] and guidance [1]."""
        prediction: Tensor = self.transformer(
            latents,
            encoder_hidden_states=text_states,
            encoder_attention_mask=text_mask,
            guidance=guidance,
            timestep=timestep,
            return_dict=False,
        )[0]
        return prediction


class Decoder(nn.Module):
    """Latents to a float image of 0–255, by a deep-compression autoencoder."""

    def __init__(self, vae: Any) -> None:
        super().__init__()
        self.network: nn.Module = vae.decoder
        self.scaling_factor: float = vae.config.scaling_factor

    def forward(self, latents: Tensor) -> Tensor:
        """Decode [1, C, h, w] and clamp."""
        image: Tensor = self.network(latents / self.scaling_factor)
        return (image * 0.5 + 0.5).clamp(0, 1) * 255


def causal_mask(length: int, window: int | None = None) -> Tensor:
    """Return what is added to logits, [1, 1, L, L]: a token sees itself and those before it, within a window."""
    positions = torch.arange(length)
    back = positions[:, None] - positions
    seen = (back >= 0) & (back < (length if window is None else window))
    return torch.where(seen, 0.0, _MASKED)[None, None]
