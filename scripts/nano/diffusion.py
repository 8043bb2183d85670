"""Diffusion stage: flow matching (Lipman et al., 2023) of target latents given source latents and a sentence."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import torch
from diffusers import UNet2DConditionModel
from diffusers.models.attention_processor import AttnProcessor
from torch import Tensor, nn
from transformers import CLIPTextModel, CLIPTokenizer

from scripts.nano.language import Sentence, describe_edit, describe_scene
from scripts.nano.networks import Reader
from scripts.nano.pool import Pool
from scripts.nano.reading import encode_texts, meaning_of, reading_loss
from scripts.nano.stages import Draw, Settings

READING_WEIGHT = 0.02
# Shares of a batch. Guidance needs ("", image) and ("", zeros); (text, zeros) is rare as no sampler asks for it.
DROP_TEXT, DROP_BOTH, DROP_IMAGE = 0.10, 0.05, 0.02
TEXT_SLOWS_AT, TEXT_RATE, TEXT_STOPS_AT = 750, 0.2, 3500
UNIFORM_TIME_SHARE = 0.15
# From step, mean in logits. A figure fills few cells with large values, which shine through much noise: its place and
# colour are decided between 0.8 and 1, where mean 0 hardly ever falls; its shape, in small values, further down.
TIME_MEANS = ((0, 0.0), (2250, 1.5), (5500, 0.8))
# From step, edits in a batch of 32. Edits turned out the harder half: they must also leave the rest alone.
EDIT_SHARES = ((0, 0.5), (9300, 0.625))


def edits_at(step: int, batch: int) -> int:
    """Give the number of edits in a batch."""
    return round(batch * [share for start, share in EDIT_SHARES if step >= start][-1])


def time_mean_at(step: int) -> float:
    """Give the noise levels' mean in logits at a step."""
    return [mean for start, mean in TIME_MEANS if step >= start][-1]


def sample_times(count: int, generator: torch.Generator, mean: float) -> Tensor:
    """Draw noise levels in 0 to 1: logit-normal (Esser et al., 2024), some uniform as sampling starts at almost 1."""
    normal = torch.sigmoid(mean + torch.randn(count, generator=generator))
    uniform = torch.rand(count, generator=generator)
    return torch.where(torch.rand(count, generator=generator) < UNIFORM_TIME_SHARE, uniform, normal)


def drop_conditions(rng: Random, texts: list[str], sources: Tensor) -> tuple[list[str], Tensor]:
    """Replace some texts by the empty prompt and some sources by zeros, for classifier-free guidance."""
    texts, sources = list(texts), sources.clone()
    for index in range(len(texts)):
        chance = rng.random()
        if chance < DROP_TEXT + DROP_BOTH:
            texts[index] = ""
        if DROP_TEXT <= chance < DROP_TEXT + DROP_BOTH + DROP_IMAGE:
            sources[index] = 0
    return texts, sources


class DiffusionStage:
    """Train the denoiser and, at a low weight on reading, the text encoder with it."""

    name = "diffusion"

    def __init__(
        self,
        tokenizer: CLIPTokenizer,
        encoder: CLIPTextModel,
        reader: Reader,
        unet: UNet2DConditionModel,
        pool: Pool,
        settings: Settings,
    ) -> None:
        self.settings = settings
        # On CPU in bfloat16 the fused attention's backward takes a third of a step; written out, almost nothing.
        unet.set_attn_processor(AttnProcessor())
        encoder.set_attn_implementation("eager")
        self.tokenizer, self.encoder, self.reader, self.unet, self.pool = tokenizer, encoder, reader, unet, pool
        self.modules: dict[str, nn.Module] = {"text_encoder": encoder, "reader": reader, "unet": unet}
        self.averages: dict[str, nn.Module] = {"text_encoder": deepcopy(encoder), "unet": deepcopy(unet)}

    def rate_of(self, module: str, step: int) -> float:
        """Slow the text encoder down once it has met the denoiser, lest it unlearn to read, and at last stop it."""
        if module == "unet" or step < TEXT_SLOWS_AT:
            return 1.0
        return TEXT_RATE if step < TEXT_STOPS_AT else 0.0

    def _batch(self, rng: Random, generations: int) -> tuple[list[Sentence], Tensor, Tensor]:
        """Draw sentences, source latents and target latents: first generations, the rest edits."""
        scenes = [rng.randrange(len(self.pool.scenes)) for _ in range(generations)]
        edits = [rng.randrange(len(self.pool.edits)) for _ in range(self.settings.batch - generations)]
        sentences = [describe_scene(rng, self.pool.scenes[index]) for index in scenes]
        sentences += [describe_edit(rng, self.pool.edits[index]) for index in edits]
        blank = self.pool.blank_latents.float().expand(generations, -1, -1, -1)
        sources = torch.cat([blank, self.pool.source_latents[edits].float()])
        targets = torch.cat([self.pool.scene_latents[scenes], self.pool.target_latents[edits]]).float()
        return sentences, sources, targets

    def loss(self, step: int, draw: Draw) -> tuple[Tensor, dict[str, float]]:
        """Compute the velocity error of a noised batch plus the weighted reading loss."""
        generations = self.settings.batch - edits_at(step, self.settings.batch)
        sentences, sources, targets = self._batch(draw.rng, generations)
        texts, sources = drop_conditions(draw.rng, [sentence.text for sentence in sentences], sources)
        noise = torch.randn(targets.shape, generator=draw.torch)
        times = sample_times(len(targets), draw.torch, time_mean_at(step))
        noised = torch.lerp(targets, noise, times[:, None, None, None])
        states, reading, read = self._read(sentences, texts, step)
        with torch.autocast("cpu", torch.bfloat16):
            velocity = self.unet(torch.cat([noised, sources], 1), times * 1000, encoder_hidden_states=states).sample
        errors = (velocity.float() - (noise - targets)).square().mean((1, 2, 3))
        figures = {"generate": errors[:generations].mean().item(), "edit": errors[generations:].mean().item(), **read}
        return errors.mean() + READING_WEIGHT * reading, figures

    def _read(self, sentences: list[Sentence], texts: list[str], step: int) -> tuple[Tensor, Tensor, dict[str, float]]:
        """Encode the texts and, as long as the encoder learns, compute the loss of reading those not dropped."""
        learns = self.rate_of("text_encoder", step) > 0
        with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(learns):
            states = self.encoder(encode_texts(self.tokenizer, texts)).last_hidden_state
            if not learns:
                return states, torch.zeros(()), {}
            said = [index for index, text in enumerate(texts) if text]
            meanings = torch.stack([meaning_of(sentences[index]) for index in said])
            loss, right = reading_loss(self.reader, states[said], meanings)
        return states, loss, {"read": right}
