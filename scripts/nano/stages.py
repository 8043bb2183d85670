"""Stages: the seeded, resumable training loop that the autoencoder, the text encoder and the diffusion model share."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

import torch
from torch import Tensor, nn

from scripts.nano.checkpoint import Progress, load_checkpoint, save_checkpoint

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What one stage is trained with."""

    steps: int
    batch: int
    learning_rate: float
    seed: int = 0
    warmup_steps: int = 100
    decay_share: float = 0.3
    restarts: tuple[int, ...] = ()
    ema_decay: float = 0.998
    checkpoint_every: int = 250
    log_every: int = 25


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One step's randomness, a function of seed and step only: a resumed run draws what an unbroken one would."""

    rng: Random
    torch: torch.Generator


class Stage(Protocol):
    """What the loop needs from a stage."""

    name: str
    settings: Settings
    modules: dict[str, nn.Module]
    averages: dict[str, nn.Module]

    def loss(self, step: int, draw: Draw) -> tuple[Tensor, dict[str, float]]:
        """Compute one batch's loss and the figures worth logging."""
        ...

    def rate_of(self, module: str, step: int) -> float:
        """Give a module's learning rate relative to the stage's."""
        ...


def draw_for(seed: int, name: str, step: int) -> Draw:
    """Seed one step's randomness."""
    rng = Random(f"{seed}/{name}/{step}")
    return Draw(rng=rng, torch=torch.Generator().manual_seed(rng.getrandbits(62)))


def learning_rate_at(settings: Settings, step: int) -> float:
    """Follow the warm-up, stay, decay schedule, once more after each restart; no cycle's middle depends on its end."""
    begin = max(start for start in (0, *settings.restarts) if step >= start)
    end = min(stop for stop in (*settings.restarts, settings.steps) if step < stop)
    warm = (step - begin + 1) / settings.warmup_steps
    cool = (end - step) / max(1.0, (end - begin) * settings.decay_share)
    return settings.learning_rate * min(1.0, warm, max(0.02, cool))


def run_stage(stage: Stage, checkpoint: Path, on_checkpoint: Callable[[Progress], None] = lambda _: None) -> Progress:
    """Train a stage to its last step, resuming from its checkpoint if there is one."""
    optimiser = _optimiser(stage)
    kept = {**stage.modules, **{f"ema_{name}": module for name, module in stage.averages.items()}}
    progress = load_checkpoint(checkpoint, kept, optimiser)
    started = time.monotonic() - progress.train_seconds
    for step in range(progress.step, stage.settings.steps):
        figures = _train_step(stage, optimiser, step)
        progress = Progress(step=step + 1, train_seconds=time.monotonic() - started)
        _report(stage, progress, figures)
        if (step + 1) % stage.settings.checkpoint_every == 0 or step + 1 == stage.settings.steps:
            save_checkpoint(checkpoint, kept, optimiser, progress)
            on_checkpoint(progress)
    return progress


def _optimiser(stage: Stage) -> torch.optim.Optimizer:
    groups = [{"name": name, "params": list(module.parameters())} for name, module in stage.modules.items()]
    rate = stage.settings.learning_rate
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99), weight_decay=0.01, fused=True)


def _train_step(stage: Stage, optimiser: torch.optim.Optimizer, step: int) -> dict[str, float]:
    for group in optimiser.param_groups:
        group["lr"] = learning_rate_at(stage.settings, step) * stage.rate_of(group["name"], step)
    optimiser.zero_grad(set_to_none=True)
    loss, figures = stage.loss(step, draw_for(stage.settings.seed, stage.name, step))
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_([p for m in stage.modules.values() for p in m.parameters()], 1.0)
    optimiser.step()
    _average(stage, step)
    return {"loss": loss.item(), **figures}


@torch.no_grad()
def _average(stage: Stage, step: int) -> None:
    # The ramp keeps the random initial weights from lingering in the average of a short run.
    decay = min(stage.settings.ema_decay, (step + 1) / (step + 10))
    for name, average in stage.averages.items():
        for kept, fresh in zip(average.parameters(), stage.modules[name].parameters(), strict=True):
            kept.lerp_(fresh, 1 - decay)


def _report(stage: Stage, progress: Progress, figures: dict[str, float]) -> None:
    if progress.step % stage.settings.log_every and progress.step != stage.settings.steps:
        return
    per_step = progress.train_seconds / progress.step
    eta = per_step * (stage.settings.steps - progress.step)
    values = " ".join(f"{key} {value:.4f}" for key, value in figures.items())
    reached = f"{stage.name} step {progress.step}/{stage.settings.steps}"
    log.info("%s %s (%.3f s/step, eta %.0f s)", reached, values, per_step, eta)
