"""Checkpoints: modules, averages and optimiser state in one safetensors file, so that a killed run resumes exactly."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a stage has come, over all its runs."""

    step: int
    train_seconds: float


def save_checkpoint(
    path: Path, modules: dict[str, nn.Module], optimiser: torch.optim.Optimizer, progress: Progress
) -> None:
    """Write a checkpoint by rename, so that a crash never leaves half a file."""
    tensors = {f"{name}/{key}": value for name, module in modules.items() for key, value in module.state_dict().items()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser/{index}/{key}": torch.as_tensor(value) for key, value in state.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    metadata = {"step": str(progress.step), "train_seconds": str(progress.train_seconds)}
    save_file({key: value.detach().contiguous().clone() for key, value in tensors.items()}, partial, metadata)
    os.replace(partial, path)


def load_modules(path: Path, modules: dict[str, nn.Module]) -> Progress:
    """Read the named modules' weights from a checkpoint."""
    with safe_open(path, framework="pt") as file:
        keys = list(file.keys())
        for name, module in modules.items():
            prefix = f"{name}/"
            weights = {key.removeprefix(prefix): file.get_tensor(key) for key in keys if key.startswith(prefix)}
            module.load_state_dict(weights)
    return read_progress(path)


def read_progress(path: Path) -> Progress:
    """Read how far a checkpoint's stage has come."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
    return Progress(step=int(metadata["step"]), train_seconds=float(metadata["train_seconds"]))


def load_checkpoint(path: Path, modules: dict[str, nn.Module], optimiser: torch.optim.Optimizer) -> Progress:
    """Read weights and optimiser state from a checkpoint; a missing file is progress zero."""
    if not path.exists():
        return Progress(step=0, train_seconds=0.0)
    progress = load_modules(path, modules)
    optimiser.load_state_dict({**optimiser.state_dict(), "state": _optimiser_state(path)})
    return progress


def _optimiser_state(path: Path) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    with safe_open(path, framework="pt") as file:
        keys = list(file.keys())
        for key in keys:
            if key.startswith("optimiser/"):
                _, index, name = key.split("/")
                state.setdefault(int(index), {})[name] = file.get_tensor(key)
    return state
