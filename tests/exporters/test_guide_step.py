"""The guide_step component."""

from __future__ import annotations

import pytest
import torch

from exporters.guide_step import Guide, Start, guide_step
from exporters.schedules import ScheduleTable

LATENTS = (4, 3, 2)


def table(terms: int, stochastic: bool = False) -> ScheduleTable:
    return ScheduleTable(scheduler="Any", terms=terms, stochastic=stochastic, by_steps={})


def test_start_scales_the_noise_and_gives_an_empty_history() -> None:
    noise = torch.randn(1, *LATENTS)
    latents, model_input, history = Start(3)(noise, torch.tensor([2.0]), torch.tensor([0.5]))
    torch.testing.assert_close(latents, 2 * noise)
    torch.testing.assert_close(model_input, noise)
    assert history.shape == (4, *LATENTS)
    assert not history.any()


@pytest.mark.parametrize("branches", [1, 2, 3])
@pytest.mark.parametrize("terms", [1, 2, 4])
@pytest.mark.parametrize("stochastic", [False, True])
def test_a_guide_is_the_recurrence(branches: int, terms: int, stochastic: bool) -> None:
    predictions = [torch.randn(1, *LATENTS) for _ in range(branches)]
    weights, latents, scale = torch.randn(branches), torch.randn(1, *LATENTS), torch.randn(1)
    coefficients = torch.randn(2 * terms + stochastic)
    history, noise = torch.randn(2 * (terms - 1), *LATENTS), torch.randn(*LATENTS)
    extra = [*([history] if terms > 1 else []), *([noise] if stochastic else [])]
    after, model_input, *kept = Guide(branches, terms)(weights, latents, coefficients, scale, *predictions, *extra)

    mixed = sum(weight * prediction for weight, prediction in zip(weights, predictions, strict=True))
    looked_at = [latents[0], mixed[0], *history, *([noise] if stochastic else [])]
    expected = sum(c * row for c, row in zip(coefficients, looked_at, strict=True))
    torch.testing.assert_close(after[0], expected)
    torch.testing.assert_close(model_input[0], expected * scale)
    if terms > 1:
        torch.testing.assert_close(kept[0], torch.stack(looked_at[: 2 * (terms - 1)]))
    else:
        assert not kept


def test_every_branch_count_has_its_function() -> None:
    part = guide_step(table(1), LATENTS, 3)
    assert list(part.graphs) == ["start", "guide_1", "guide_2", "guide_3"]
    assert part.parameters == 0


def test_ports_exist_only_where_the_scheduler_needs_them() -> None:
    plain = guide_step(table(1), LATENTS, 1).graphs["guide_1"]
    rich = guide_step(table(2, stochastic=True), LATENTS, 1).graphs["guide_1"]
    assert not {"history", "step_noise"} & set(plain.inputs)
    assert {"history", "step_noise"} <= set(rich.inputs)
    assert rich.outputs == ("next_latents", "next_model_input", "next_history")
    assert not set(rich.outputs) & set(rich.inputs)
