"""Networks: builds the untrained modules of the pipeline."""

from __future__ import annotations

import torch
from diffusers import AutoencoderTiny, DPMSolverMultistepScheduler, UNet2DConditionModel
from torch import Tensor, nn
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer

from scripts.nano.tokens import MAX_TOKENS

LATENT_CHANNELS = 12
LATENT_SIDE = 8
TEXT_WIDTH = 128


def count_parameters(module: nn.Module) -> int:
    """Count a module's parameters."""
    return sum(parameter.numel() for parameter in module.parameters())


def build_autoencoder(width: int = 48) -> AutoencoderTiny:
    """Build the 8× autoencoder; its last decoder stage has no block because edges of flat shapes do not need one."""
    return AutoencoderTiny(
        latent_channels=LATENT_CHANNELS,
        encoder_block_out_channels=(width,) * 4,
        decoder_block_out_channels=(width,) * 4,
        num_encoder_blocks=(0, 1, 2, 2),
        num_decoder_blocks=(2, 2, 1, 0),
        scaling_factor=1.0,
    )


def build_text_encoder(tokenizer: CLIPTokenizer, width: int = TEXT_WIDTH, layers: int = 4) -> CLIPTextModel:
    """Build the text encoder that fits a tokenizer."""
    config = CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=MAX_TOKENS,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return CLIPTextModel(config)


def build_unet(widths: tuple[int, int] = (96, 128), text_width: int = TEXT_WIDTH) -> UNet2DConditionModel:
    """Build the denoiser; its input is the target's latents followed by the source's."""
    return UNet2DConditionModel(
        sample_size=LATENT_SIDE,
        in_channels=2 * LATENT_CHANNELS,
        out_channels=LATENT_CHANNELS,
        block_out_channels=widths,
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        mid_block_type="UNetMidBlock2D",
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=text_width,
        attention_head_dim=4,
        norm_num_groups=16,
    )


def build_scheduler() -> DPMSolverMultistepScheduler:
    """Build the scheduler: at order one with these settings it is the Euler method of flow matching.

    The shift spends more steps at high noise, where figures are decided.
    """
    return DPMSolverMultistepScheduler(
        solver_order=1, prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
    )


class Reader(nn.Module):
    """Small heads that read a sentence's meaning back from its token states; only used in training.

    One learned query per slot looks at the tokens once, just as a latent pixel of the denoiser does.
    """

    def __init__(self, slot_count: int, class_counts: tuple[int, ...], width: int = TEXT_WIDTH) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(slot_count, width) * width**-0.5)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(width, count) for count in class_counts)

    def forward(self, states: Tensor) -> list[Tensor]:
        """Read token states [batch, tokens, width] into one [batch, slots, classes] tensor of logits per field."""
        queries = self.queries.expand(states.shape[0], -1, -1)
        slots, _ = self.attention(queries, states, states, need_weights=False)
        return [head(slots) for head in self.heads]
