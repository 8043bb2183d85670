"""Qwen3-VL's towers as modules with plain tensors at their boundary, for one text and at most one picture.

Positions, masks and the picture's grid are fixed, so what transformers computes from them at run time is constant
here. The blocks' own layers are called; attention and norms are written out, so that nothing of transformers' mask and
cache code is traced, and so that half precision survives activations whose squares it cannot hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.vision_utils import get_vision_interpolation_indices_and_weights, get_vision_position_ids

from exporters.families.lanczos import Lanczos

# Added to the scores of what may not be seen: nothing is left of it after a softmax, and half precision holds it.
_UNSEEN = -1e4
# The smallest normal number in half precision: a row of zeros has no largest value to divide by.
_SMALLEST = 2.0**-14


class TokenEmbedding(nn.Module):
    """Token ids int32 [1, L] to embeddings [1, L, D]."""

    def __init__(self, embedding: nn.Module) -> None:
        super().__init__()
        self.embedding = embedding

    def forward(self, input_ids: Tensor) -> Tensor:
        """Look up."""
        embedded: Tensor = self.embedding(input_ids)
        return embedded


class LanguageModel(nn.Module):
    """Embeddings [1, L, D] to the last hidden state after the final norm, [1, L, D].

    Padding is at the end, where causality keeps it from what comes before. `image_start` is the position of the first
    image token.
    """

    cosines: Tensor
    sines: Tensor
    axes: Tensor
    mask: Tensor

    def __init__(self, model: Any, length: int, image_start: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(layer) for layer in model.layers)
        self.norm = RmsNorm(model.norm)
        self.length, self.image_start = length, image_start
        angles = torch.arange(length)[:, None] * model.rotary_emb.inv_freq.float()
        scaling = model.rotary_emb.attention_scaling
        self.register_buffer("cosines", angles.cos() * scaling, persistent=False)
        self.register_buffer("sines", angles.sin() * scaling, persistent=False)
        self.register_buffer("axes", _axes(angles.shape[1], model.rotary_emb.mrope_section), persistent=False)
        mask = torch.full((length, length), _UNSEEN).triu(1)
        groups = model.config.num_attention_heads // model.config.num_key_value_heads
        self.register_buffer("mask", mask.repeat(1, 1, groups, 1), persistent=False)

    def forward(self, inputs_embeds: Tensor, position_ids: Tensor, visual: Tensor) -> Tensor:
        """Encode with position ids int32 [3, L] and the picture's features for the first layers [k, N, D]."""
        # Looked up, because half precision has no angle of some hundred radians to take a sine of.
        cosines, sines = (self._by_axis(table, position_ids) for table in (self.cosines, self.sines))
        states = inputs_embeds
        for index, layer in enumerate(self.layers):
            states = layer(states, cosines, sines, self.mask)
            if index < visual.shape[0]:
                states = self._add_visual(states, visual[index])
        found: Tensor = self.norm(states)
        return found

    def _by_axis(self, table: Tensor, position_ids: Tensor) -> Tensor:
        """Return each frequency's value at its own axis' position, [L, head size]."""
        half = (functional.embedding(position_ids, table) * self.axes).sum(0)
        return torch.cat([half, half], dim=-1)

    def _add_visual(self, states: Tensor, features: Tensor) -> Tensor:
        after = self.length - self.image_start - features.shape[0]
        return states + functional.pad(features, (0, 0, self.image_start, after))


class Layer(nn.Module):
    """One of the language model's layers."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.self_attn, self.mlp = layer.self_attn, layer.mlp
        self.input_layernorm = RmsNorm(layer.input_layernorm)
        self.post_attention_layernorm = RmsNorm(layer.post_attention_layernorm)
        self.q_norm, self.k_norm = RmsNorm(layer.self_attn.q_norm), RmsNorm(layer.self_attn.k_norm)

    def forward(self, states: Tensor, cosines: Tensor, sines: Tensor, mask: Tensor) -> Tensor:
        """Take states [1, L, D], rotations [L, head size] and what is added to scores [1, 1, sharing heads × L, L]."""
        states = states + self._attend(self.input_layernorm(states), cosines, sines, mask)
        found: Tensor = states + self.mlp(self.post_attention_layernorm(states))
        return found

    def _attend(self, states: Tensor, cosines: Tensor, sines: Tensor, mask: Tensor) -> Tensor:
        attention, length = self.self_attn, states.shape[1]
        split = (1, length, -1, attention.head_dim)
        query = self.q_norm(attention.q_proj(states).reshape(split)).transpose(1, 2)
        key = self.k_norm(attention.k_proj(states).reshape(split)).transpose(1, 2)
        value = attention.v_proj(states).reshape(split).transpose(1, 2)
        query, key = (_rotated(each, cosines, sines) for each in (query, key))
        # Heads that share a key and value are rows of one, so that neither is copied.
        rows = query.reshape(1, key.shape[1], -1, attention.head_dim)
        seen = functional.scaled_dot_product_attention(rows, key, value, attn_mask=mask).reshape(query.shape)
        attended: Tensor = attention.o_proj(seen.transpose(1, 2).reshape(1, length, -1))
        return attended


class RmsNorm(nn.Module):
    """Normalises by root mean square, after each row's mean size.

    Qwen3's activations reach thousands, whose squares half precision does not hold; over c = Σ|x| / √D the squares of a
    row add up to something from 1 to D. Sums are products with ones and 1 / c is a squared root, because XNNPACK takes
    these and neither reductions of the last axis nor reciprocals, each of which would split the graph.
    """

    ones: Tensor

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.norm = norm
        self.width = norm.weight.numel()
        self.register_buffer("ones", torch.ones(1, self.width), persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Normalise [..., D]."""
        size = functional.linear(states.abs() * self.width**-0.5, self.ones).clamp(min=_SMALLEST)
        factor = torch.rsqrt(size).square()
        scaled = states * factor
        tiny = (factor * (self.width * self.norm.variance_epsilon) ** 0.5).square()
        summed = functional.linear(scaled.square(), self.ones)
        found: Tensor = scaled * (torch.rsqrt(summed + tiny) * self.width**0.5) * self.norm.weight
        return found


class VisionEncoder(nn.Module):
    """A float image of 0–255 to image embeddings [N, D] and features for the language model's first layers [k, N, D].

    The picture is brought to `side` × `side` first, as Pillow does it. `mean` and `spread` are the channels', for
    pixels that were multiplied by `factor`. Runs once the weights are there and `settle` was called.
    """

    scale: Tensor
    shift: Tensor
    cosines: Tensor
    sines: Tensor

    def __init__(
        self, tower: Any, source: tuple[int, int], side: int, factor: float, mean: list[float], spread: list[float]
    ) -> None:
        super().__init__()
        self.resize = Lanczos(source, (side, side))
        deviation = torch.tensor(spread)[:, None, None]
        self.register_buffer("scale", factor / deviation, persistent=False)
        self.register_buffer("shift", -torch.tensor(mean)[:, None, None] / deviation, persistent=False)
        self.merge, self.grid = tower.spatial_merge_size, side // tower.patch_size
        coordinates = get_vision_position_ids(torch.tensor([[1, self.grid, self.grid]]), self.merge)
        cosines, sines = tower.rotary_pos_emb(torch.zeros(1), coordinates)
        self.register_buffer("cosines", cosines, persistent=False)
        self.register_buffer("sines", sines, persistent=False)
        self.patches: nn.Module = tower.patch_embed.proj
        self.table: nn.Module | None = tower.pos_embed
        self.interpolation = (tower.num_grid_per_side, tower.interpolation_mode, tower.interpolation_align_corners)
        self.register_parameter("positions", None)
        self.blocks, self.merger = tower.blocks, tower.merger
        self.deep_mergers = tower.deepstack_merger_list
        self.deep_blocks = list(tower.deepstack_visual_indexes)

    def settle(self) -> None:
        """Replace the weights for any picture by what they come to for a still one of this size."""
        if isinstance(self.patches, nn.Conv3d) and self.table is not None:
            self.positions = nn.Parameter(self._interpolated(self.table), requires_grad=False)
            self.patches, self.table = _flat_patches(self.patches), None

    def forward(self, source_image: Tensor) -> tuple[Tensor, Tensor]:
        """Encode [1, 3, h, w]."""
        states = self._in_blocks(self.patches(self.resize(source_image) * self.scale + self.shift)) + self.positions
        features = []
        for index, block in enumerate(self.blocks):
            states = states + self._attend(block.attn, block.norm1(states))
            states = states + block.mlp(block.norm2(states))
            if index in self.deep_blocks:
                features.append(self.deep_mergers[self.deep_blocks.index(index)](states))
        return self.merger(states), torch.stack(features)

    def _interpolated(self, table: nn.Module) -> Tensor:
        """Return the learned positions at the grid's, in the order of merging [patches, C]."""
        side, mode, align_corners = self.interpolation
        indices, weights = get_vision_interpolation_indices_and_weights(
            torch.tensor([[1, self.grid, self.grid]]),
            num_grid_per_side=side,
            mode=mode,
            align_corners=align_corners,
            spatial_merge_size=self.merge,
        )
        with torch.no_grad():
            found: Tensor = (table(indices) * weights[:, :, None]).sum(1)
        return found

    def _in_blocks(self, patches: Tensor) -> Tensor:
        """Order patches [1, C, rows, columns] so that those which are merged follow each other, [patches, C]."""
        _, channels, rows, columns = patches.shape
        by_block = patches.reshape(channels, rows // self.merge, self.merge, columns // self.merge, self.merge)
        return by_block.permute(1, 3, 2, 4, 0).reshape(rows * columns, channels)

    def _attend(self, attention: Any, states: Tensor) -> Tensor:
        count, width = states.shape
        together = attention.qkv(states)
        split = (1, count, attention.num_heads, -1)
        query, key, value = (
            together[:, first : first + width].reshape(split).transpose(1, 2) for first in (0, width, 2 * width)
        )
        query, key = (_rotated(each, self.cosines, self.sines) for each in (query, key))
        seen = functional.scaled_dot_product_attention(query, key, value)
        attended: Tensor = attention.proj(seen[0].transpose(0, 1).reshape(count, width))
        return attended


def _rotated(states: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    half = states.shape[-1] // 2
    first, second = states[..., :half], states[..., half:]
    return states * cosines + torch.cat([-second, first], dim=-1) * sines


def _axes(frequencies: int, sections: Iterable[int]) -> Tensor:
    """Say which of time, height and width each frequency turns with, as ones in [3, 1, frequencies]."""
    chosen = torch.zeros(frequencies, dtype=torch.int64)
    for axis, section in enumerate(sections):
        if axis:
            chosen[axis : section * 3 : 3] = axis
    return functional.one_hot(chosen, 3).T[:, None].float().contiguous()


def _flat_patches(patches: nn.Conv3d) -> nn.Conv2d:
    """Return the patch embedding for a still picture, which it sees as several equal frames."""
    _, height, width = patches.kernel_size
    flat = nn.Conv2d(patches.in_channels, patches.out_channels, (height, width), stride=(height, width), device="meta")
    flat.weight = nn.Parameter(patches.weight.detach().sum(2), requires_grad=False)
    flat.bias = patches.bias
    return flat
