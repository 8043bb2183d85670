"""What Stable Diffusion's pipelines do once an image before their loop, and which denoiser calls a round makes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from exporters.conditioning import NEGATIVE_IDS, PROMPT_IDS, SOURCE_IMAGE, Branch, Conditioning, ids_port
from exporters.guidance import (
    BLANK_LATENTS,
    NEGATIVE_STATES,
    TEXT_STATES,
    guidance_of,
    source_branches,
    text_branches,
)
from exporters.schedules import constant
from profiler.errors import InputError
from profiler.records.plan import Call, Port
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

GENERATES, EDITS = "StableDiffusionPipeline", "StableDiffusionInstructPix2PixPipeline"
# Distilled to a few steps, with guidance as an input of its U-Net (https://arxiv.org/abs/2310.04378).
DISTILLED = "LatentConsistencyModelPipeline"
SOURCE_LATENTS = "source_latents"


def conditioning(
    pipeline: str, length: int, image: tuple[int, int, int]
) -> Callable[[Task, TaskDefaults], Conditioning]:
    """Return what a pipeline's plans do before the loop, and the denoiser calls of a round."""
    if pipeline == DISTILLED:
        return partial(_distilled, length)
    return partial(_guided, length, image if pipeline == EDITS else None)


def _distilled(length: int, task: Task, settings: TaskDefaults) -> Conditioning:
    """Encode the prompt; the network embeds the guidance. Raises InputError for what the pipeline does not have."""
    if settings.negative_prompt or settings.image_guidance is not None:
        raise InputError(
            "a consistency model embeds its guidance: it has no negative prompt and no image guidance",
            hint="Leave them out.",
        )
    return Conditioning(
        inputs=(ids_port(PROMPT_IDS, length),),
        calls=(_encode_text(PROMPT_IDS, TEXT_STATES),),
        branches=(Branch("text", 1.0, {"text_states": TEXT_STATES, "guidance": "guidance"}),),
        # The pipeline's scale starts at 1, the network's at 0.
        constants={"guidance": constant(np.array([settings.text_guidance - 1]))},
    )


def _guided(length: int, source: tuple[int, int, int] | None, task: Task, settings: TaskDefaults) -> Conditioning:
    """Encode prompts and, where the model sees a `source` [C, H, W], its picture or the blank one's latents."""
    guidance = guidance_of(settings)
    if source is None:
        branches = text_branches(guidance)
    else:
        branches = source_branches(guidance, SOURCE_LATENTS if task == "edit" else BLANK_LATENTS)
    states = {TEXT_STATES: PROMPT_IDS, NEGATIVE_STATES: NEGATIVE_IDS}
    used = {state: ids for state, ids in states.items() if any(state in branch.bind.values() for branch in branches)}
    ports = [ids_port(ids, length) for ids in used.values()]
    calls = [_encode_text(ids, state) for state, ids in used.items()]
    if source is not None and task == "edit":
        ports.append(Port(name=SOURCE_IMAGE, dtype="float32", shape=(1, *source)))
        calls.append(_ENCODE_IMAGE)
    return Conditioning(inputs=tuple(ports), calls=tuple(calls), branches=branches)


def _encode_text(ids: str, states: str) -> Call:
    bind, emit = {"input_ids": ids}, {"text_states": states}
    return Call(component="text_encoder", function="encode", bind=bind, emit=emit, stage="text_encoder")


_ENCODE_IMAGE = Call(
    component="image_encoder",
    function="encode",
    bind={SOURCE_IMAGE: SOURCE_IMAGE},
    emit={SOURCE_LATENTS: SOURCE_LATENTS},
    stage="image_encoder",
)
