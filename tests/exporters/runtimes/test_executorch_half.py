"""Networks in float16 with float32 outside."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch")

import torch
from torch import Tensor, nn

from exporters.runtimes.executorch_half import HalfInside


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        self.second.weight = self.first.weight
        self.register_buffer("places", torch.arange(8))
        self.taken: list[torch.dtype] = []

    def forward(self, values: Tensor, timestep: Tensor) -> Tensor:
        self.taken += [values.dtype, timestep.dtype, self.first.weight.dtype, self.get_buffer("places").dtype]
        found: Tensor = self.second(self.first(values)) + self.get_buffer("places")
        return found


def test_it_computes_in_halves_and_hands_out_floats() -> None:
    torch.manual_seed(0)
    network = Network().requires_grad_(False)
    values, timestep = torch.randn(3, 8), torch.tensor([500.7])
    (found,) = HalfInside(network)(values, timestep)
    assert found.dtype == torch.float32
    assert network.taken == [torch.float16, torch.float32, torch.float16, torch.int64]
    exact = network(values, timestep)
    assert 0 < float((found - exact).norm() / exact.norm()) < 1e-3


def test_the_original_keeps_its_weights_and_shared_ones_stay_shared() -> None:
    network = Network()
    before = network.first.weight.detach().clone()
    halves = HalfInside(network)
    halves(torch.randn(3, 8), torch.tensor([1.0]))
    assert network.first.weight.dtype == torch.float32
    assert torch.equal(network.first.weight, before)
    assert network.second.weight is network.first.weight
    assert sum(each.numel() for each in halves.buffers() if each.is_floating_point()) == 8 * 8 + 2 * 8
    assert list(halves.parameters()) == []
