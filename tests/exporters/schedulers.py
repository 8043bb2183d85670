"""The schedulers that plans must express, as Stable Diffusion checkpoints configure them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from diffusers import (
    DDIMScheduler,
    DDPMScheduler,
    DEISMultistepScheduler,
    DPMSolverMultistepScheduler,
    DPMSolverSinglestepScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    HeunDiscreteScheduler,
    LCMScheduler,
    LMSDiscreteScheduler,
    PNDMScheduler,
    UniPCMultistepScheduler,
)

from tests.exporters.small_pipelines import sd_scheduler


def nano_scheduler() -> Any:
    """Build nano's: at order one on flow sigmas it is the Euler method of flow matching."""
    return DPMSolverMultistepScheduler(
        solver_order=1, use_flow_sigmas=True, prediction_type="flow_prediction", flow_shift=1.0
    )


SCHEDULERS: dict[str, Callable[[], Any]] = {
    "euler": lambda: sd_scheduler(EulerDiscreteScheduler),
    "euler_trailing": lambda: sd_scheduler(EulerDiscreteScheduler, timestep_spacing="trailing"),
    "euler_ancestral": lambda: sd_scheduler(EulerAncestralDiscreteScheduler),
    "ddim": lambda: sd_scheduler(DDIMScheduler, clip_sample=False, set_alpha_to_one=False, steps_offset=1),
    "ddim_v": lambda: sd_scheduler(DDIMScheduler, clip_sample=False, prediction_type="v_prediction"),
    "ddpm": lambda: sd_scheduler(DDPMScheduler, clip_sample=False),
    "pndm": lambda: sd_scheduler(PNDMScheduler, skip_prk_steps=True, set_alpha_to_one=False, steps_offset=1),
    "dpm_2m": lambda: sd_scheduler(DPMSolverMultistepScheduler),
    "dpm_2m_sde": lambda: sd_scheduler(DPMSolverMultistepScheduler, algorithm_type="sde-dpmsolver++"),
    "dpm_single": lambda: sd_scheduler(DPMSolverSinglestepScheduler, lower_order_final=True),
    "deis": lambda: sd_scheduler(DEISMultistepScheduler),
    "unipc": lambda: sd_scheduler(UniPCMultistepScheduler),
    "lcm": lambda: sd_scheduler(LCMScheduler),
    "lms": lambda: sd_scheduler(LMSDiscreteScheduler),
    "heun": lambda: sd_scheduler(HeunDiscreteScheduler),
    "nano": nano_scheduler,
}
