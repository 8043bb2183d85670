"""SANA-Sprint pipelines taken apart for export."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from diffusers import SanaSprintPipeline, SCMScheduler
from torch import Tensor

NAME = "sana_sprint"
_CALL = inspect.signature(SanaSprintPipeline.__call__).parameters
# What the pipeline puts before every prompt ("complex human instruction").
INSTRUCTION = "\n".join(_CALL["complex_human_instruction"].default)


def intermediate_angle(steps: int) -> float | None:
    """Return the pipeline's own angle of the second of two rounds; its scheduler takes none for other step counts."""
    angle: float = _CALL["intermediate_timesteps"].default
    return angle if steps == 2 else None


class TrigFlow:
    """The pipeline's loop around its consistency scheduler, in the form of a scheduler.

    Sample, model output and noise are what the pipeline's are; the network sees `timesteps`. The last step returns
    what the pipeline decodes.
    """

    def __init__(self, config: Any, steps: int) -> None:
        self._scheduler = SCMScheduler.from_config(config)
        self._scheduler.set_timesteps(
            steps, max_timesteps=_CALL["max_timesteps"].default, intermediate_timesteps=intermediate_angle(steps)
        )
        self._scheduler.set_begin_index(0)
        self._angles = self._scheduler.timesteps[:-1]
        self._data: float = self._scheduler.config.sigma_data
        self._round = 0
        self.timesteps = torch.sin(self._angles) / (torch.cos(self._angles) + torch.sin(self._angles))
        self.init_noise_sigma = self._data

    def scale_model_input(self, sample: Tensor, timestep: Tensor) -> Tensor:
        """Scale to the network's flow, whose noise has the weight `timestep`."""
        return sample / self._data * _length(timestep)

    def step(
        self,
        model_output: Tensor,
        timestep: Tensor,
        sample: Tensor,
        generator: torch.Generator | None = None,
        return_dict: bool = False,
    ) -> tuple[Tensor]:
        """Turn the network's flow into the scheduler's, and take its step. Takes the rounds in their order."""
        del return_dict
        seen = self.scale_model_input(sample, timestep)
        flow = ((1 - 2 * timestep) * seen + (1 - 2 * timestep + 2 * timestep**2) * model_output) / _length(timestep)
        after, denoised = self._scheduler.step(
            flow * self._data, self._angles[self._round], sample, generator=generator, return_dict=False
        )
        self._round += 1
        return (denoised / self._data if self._round == len(self._angles) else after,)


def _length(timestep: Tensor) -> Tensor:
    return torch.sqrt(timestep**2 + (1 - timestep) ** 2)
