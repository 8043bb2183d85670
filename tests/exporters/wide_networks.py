"""Networks whose values exceed half precision where real ones' do, at sizes that run in a moment."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from exporters.parts import Graph

TOKENS, WIDTH, HEAD = 1024, 64, 32


class LinearAttention(nn.Module):
    """SANA's: sums over all tokens, divided by their weights; one token's query is all zero after the ReLU."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, states: Tensor) -> Tensor:
        query, key, value = (
            layer(states).transpose(1, 2).unflatten(1, (WIDTH // HEAD, HEAD))
            for layer in (self.query, self.key, self.value)
        )
        value = functional.pad(value, (0, 0, 0, 1), value=1.0)
        sums = value @ functional.relu(key).transpose(-1, -2) @ functional.relu(query)
        mixed = sums[:, :, :-1] / (sums[:, :, -1:] + 1e-15)
        found: Tensor = self.out(mixed.flatten(1, 2).transpose(1, 2))
        return found


class PlainAttention(nn.Module):
    """What a softmax bounds."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.enter, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, states: Tensor) -> Tensor:
        query, key, value = self.enter(states).chunk(3, dim=-1)
        weights = (query @ key.transpose(1, 2) / WIDTH**0.5).softmax(-1)
        found: Tensor = self.out(weights @ value)
        return found


class LargeNorm(nn.Module):
    """An RMS norm of values whose squares half precision does not hold."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.enter, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)

    def forward(self, states: Tensor) -> Tensor:
        found: Tensor = self.out(rms_norm(self.enter(states)))
        return found


class LargeResidual(nn.Module):
    """A language model's stream, which grows beyond half precision between norms."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, states: Tensor) -> Tensor:
        states = self.layers[0](states) * 1000.0
        states = states + 1000.0 * rms_norm(self.layers[1](rms_norm(states)))
        found: Tensor = self.layers[2](rms_norm(states))
        return found


def rms_norm(values: Tensor) -> Tensor:
    return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + 1e-6)


def graph_of(module: nn.Module, *, tokens: int = TOKENS, scale: float = 1.0, wide: bool = False) -> Graph:
    """Give a network states of a size, the first of them zero."""
    states = torch.randn(1, tokens, WIDTH, generator=torch.Generator().manual_seed(1)) * scale
    states[:, 0] = 0
    module = module.eval().requires_grad_(False)
    return Graph(module=module, inputs={"states": states}, outputs=("found",), wide=wide)
