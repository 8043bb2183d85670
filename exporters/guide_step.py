"""The guide_step component: tiny float32 graphs that mix guidance branches and take one scheduler update."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exporters.parts import Graph, Part
from exporters.schedules import ScheduleTable


class Start(nn.Module):
    """Scales the job's noise to the scheduler's first sample."""

    def __init__(self, terms: int) -> None:
        super().__init__()
        self.history_rows = 2 * (terms - 1)

    def forward(self, noise: Tensor, start_scale: Tensor, first_input_scale: Tensor) -> tuple[Tensor, ...]:
        """Return latents, the denoiser's input and, where the scheduler looks back, an empty history."""
        latents = noise * start_scale
        first = (latents, latents * first_input_scale)
        # Zeros that follow from an input, because constant ones would be stored in the graph.
        return (*first, (noise * 0).repeat(self.history_rows, 1, 1, 1)) if self.history_rows else first


class Guide(nn.Module):
    """Mixes predictions and updates the latents as `exporters.schedules.Schedule` defines it."""

    def __init__(self, branches: int, terms: int) -> None:
        super().__init__()
        self.branches = branches
        self.history_rows = 2 * (terms - 1)

    def forward(
        self, guidance_weights: Tensor, latents: Tensor, coefficients: Tensor, next_input_scale: Tensor, *rest: Tensor
    ) -> tuple[Tensor, ...]:
        """Take predictions, then history and noise where the scheduler has them, after the fixed arguments."""
        predictions, (*state,) = rest[: self.branches], rest[self.branches :]
        prediction = _weighted_sum(guidance_weights, torch.cat(predictions))
        history = [state.pop(0)] if self.history_rows else []
        noise = [state.pop(0).unsqueeze(0)] if state else []
        looked_at = [latents, prediction, *history]
        after = _weighted_sum(coefficients, torch.cat([*looked_at, *noise]))
        kept = [torch.cat(looked_at)[: self.history_rows]] if self.history_rows else []
        return (after, after * next_input_scale, *kept)


def guide_step(table: ScheduleTable, latents: tuple[int, int, int], most_branches: int) -> Part:
    """Build the component for a scheduler; every branch count that the model can use gets a function of its own."""
    guides = {f"guide_{count}": _guide(table, latents, count) for count in range(1, most_branches + 1)}
    return Part(name="guide_step", graphs={"start": _start(table.terms, latents), **guides})


def state_names(terms: int) -> tuple[str, ...]:
    """Name what a round hands to the next; a scheduler that looks back has a history, [2 (terms − 1), C, h, w]."""
    return ("latents", "model_input", *(("history",) if terms > 1 else ()))


def next_name(name: str) -> str:
    """Name a state's output port: within one graph it must differ from the input's."""
    return f"next_{name}"


def _weighted_sum(weights: Tensor, rows: Tensor) -> Tensor:
    return (weights @ rows.flatten(1)).reshape(1, *rows.shape[1:])


def _start(terms: int, latents: tuple[int, int, int]) -> Graph:
    inputs = {"noise": _normal(1, *latents), "start_scale": _normal(1), "first_input_scale": _normal(1)}
    return Graph(module=Start(terms), inputs=inputs, outputs=state_names(terms))


def _guide(table: ScheduleTable, latents: tuple[int, int, int], branches: int) -> Graph:
    inputs = {
        "guidance_weights": _normal(branches),
        "latents": _normal(1, *latents),
        "coefficients": _normal(2 * table.terms + table.stochastic),
        "next_input_scale": _normal(1),
    }
    inputs |= {f"prediction_{number + 1}": _normal(1, *latents) for number in range(branches)}
    inputs |= {"history": _normal(2 * (table.terms - 1), *latents)} if table.terms > 1 else {}
    inputs |= {"step_noise": _normal(*latents)} if table.stochastic else {}
    outputs = tuple(next_name(name) for name in state_names(table.terms))
    return Graph(module=Guide(branches, table.terms), inputs=inputs, outputs=outputs)


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
