"""Eight-bit weights."""

from __future__ import annotations

import pytest
import torch

from exporters.quantize import int8


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    "weights",
    [normal(5, 7), normal(2000, 700), normal(7, 5).t(), normal(4, 6).bfloat16(), normal(3, 8) * 1e-20, normal(2, 2)],
)
def test_a_weight_is_off_by_half_a_step_at_most(weights: torch.Tensor) -> None:
    coded = int8.encode(weights)
    step = weights.float().abs().amax(1, keepdim=True) / 127
    assert ((int8.decode(coded) - weights.float()).abs() <= step * 0.5001).all()
    assert (coded.codes.abs().amax(1) == 127).all()
    assert torch.equal(coded.scales, step.squeeze(1))


def test_a_row_of_zeros_stays_zero() -> None:
    coded = int8.encode(torch.tensor([[0.0, -0.0], [1.0, 0.5], [1e-45, 0.0]]))
    assert torch.equal(int8.decode(coded)[0], torch.zeros(2))
    assert torch.isfinite(int8.decode(coded)).all()


def test_a_tie_goes_to_the_even_code() -> None:
    assert int8.encode(torch.tensor([[127.0, 0.5, 1.5, -2.5]])).codes.tolist() == [[127, 0, 2, -2]]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_undefined_weights_are_refused(bad: float) -> None:
    weights = normal(3, 3)
    weights[2, 2] = bad
    with pytest.raises(ValueError, match="NaN or infinity"):
        int8.encode(weights)


def test_no_weights_are_no_codes() -> None:
    assert int8.decode(int8.encode(torch.zeros(0, 4))).shape == (0, 4)
