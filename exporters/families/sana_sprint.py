"""SANA-Sprint pipelines taken apart for export (https://arxiv.org/abs/2503.09641)."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import torch
from diffusers import SanaSprintPipeline, SCMScheduler
from torch import Tensor, nn

from exporters.conditioning import PROMPT_IDS, PROMPT_MASK, Branch, Conditioning, ids_port
from exporters.families.sana_sprint_graphs import Decoder, Denoiser, TextEncoder
from exporters.networks import Networks
from exporters.parts import Graph, Model, Part, Reference, ReferenceInputs, read_json
from exporters.reference import DrawnPerRound
from exporters.schedules import constant
from exporters.sources import Subfolders
from profiler.errors import InputError
from profiler.records.bundle import PromptForm
from profiler.records.plan import Call
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

NAME = "sana_sprint"
SUBFOLDERS = Subfolders(networks=("text_encoder", "transformer", "vae"), settings=("scheduler", "tokenizer"))
PIPELINE = "SanaSprintPipeline"
PIPELINES = (PIPELINE,)
_PIXELS_PER_LATENT = 32
_CALL = inspect.signature(SanaSprintPipeline.__call__).parameters
# What the pipeline puts before every prompt ("complex human instruction"), and how many tokens its network sees.
INSTRUCTION = "\n".join(_CALL["complex_human_instruction"].default)
TEXT_LENGTH: int = _CALL["max_sequence_length"].default
_TEXT_STATES, _TEXT_MASK, _GUIDANCE = "text_states", "text_mask", "guidance"
_CLASSES = {
    "text_encoder": "Gemma2Model",
    "transformer": "SanaTransformer2DModel",
    "vae": "AutoencoderDC",
    "scheduler": "SCMScheduler",
}


def defaults_of(folder: Path) -> tuple[int, dict[Task, TaskDefaults]]:
    """Return the image side that a transformer was made for, and the pipeline's own settings."""
    side = read_json(folder / "transformer" / "config.json").get("sample_size")
    if not isinstance(side, int) or side < 1:
        raise InputError(f"{folder}: transformer/config.json names no sample_size")
    prompt = "a tiny astronaut hatching from an egg on the moon"
    return side * _PIXELS_PER_LATENT, {"generate": TaskDefaults(prompt=prompt, steps=2, text_guidance=4.5)}


def load(networks: Networks, recipe: Recipe) -> Model:
    """Take a pipeline folder apart. Raises InputError where it cannot be expressed."""
    networks.check_pipeline(PIPELINE)
    pipeline = _open_pipeline(networks)
    length = prompt_length(pipeline.tokenizer)
    _check(pipeline, length, networks)
    latents = _latent_shape(pipeline, recipe)
    scale: float = pipeline.transformer.config.guidance_embeds_scale
    return Model(
        title=f"diffusers {diffusers.__version__} {PIPELINE}, float32 eager PyTorch on the CPU",
        parts={part.name: replace(part, filler=networks) for part in _parts(pipeline, length, latents)},
        scheduler=type(pipeline.scheduler).__name__,
        schedulers=partial(TrigFlow, pipeline.scheduler.config),
        tokenizer=pipeline.tokenizer,
        prompt_length=length,
        prompts={"generate": PromptForm(template=INSTRUCTION + "{prompt}", lowercase=True)},
        image=(3, recipe.height, recipe.width),
        latents=latents,
        tasks=("generate",),
        most_branches=1,
        condition=partial(condition, length, scale),
        run_reference=partial(run_reference, pipeline),
    )


def templates() -> tuple[str, ...]:
    """Return the texts that stand around prompts, for a tokenizer that has to do without the real one's words."""
    return (INSTRUCTION,)


def prompt_length(tokenizer: Any) -> int:
    """Return how many tokens the pipeline gives the text encoder, most of them its instruction."""
    return len(tokenizer.encode(INSTRUCTION)) + TEXT_LENGTH - 2


def condition(length: int, guidance_scale: float, task: Task, settings: TaskDefaults) -> Conditioning:
    """Encode the prompt; the network embeds the guidance. Raises InputError for what the pipeline does not have."""
    if settings.image_guidance is not None:
        raise InputError("image guidance was given, but SANA-Sprint sees no source image", hint="Leave it out.")
    if settings.negative_prompt:
        raise InputError(
            "a negative prompt was given, but SANA-Sprint embeds its guidance and has none", hint="Leave it out."
        )
    bind = {name: name for name in (_TEXT_STATES, _TEXT_MASK, _GUIDANCE)}
    return Conditioning(
        inputs=(ids_port(PROMPT_IDS, length), ids_port(PROMPT_MASK, length)),
        calls=(_ENCODE_TEXT,),
        branches=(Branch("text", 1.0, bind),),
        constants={_GUIDANCE: constant(np.array([settings.text_guidance * guidance_scale]))},
    )


_ENCODE_TEXT = Call(
    component="text_encoder",
    function="encode",
    bind={"input_ids": PROMPT_IDS, PROMPT_MASK: PROMPT_MASK},
    emit={_TEXT_STATES: _TEXT_STATES, _TEXT_MASK: _TEXT_MASK},
    stage="text_encoder",
)


def run_reference(pipeline: Any, inputs: ReferenceInputs) -> Reference:
    """Make one image with the pipeline's own loop, at the size that was asked for."""
    settings = inputs.settings
    drawn = DrawnPerRound(inputs.noise.shape[1:])
    height, width = (size * pipeline.vae_scale_factor for size in inputs.noise.shape[2:])
    image = pipeline(
        prompt=settings.prompt,
        num_inference_steps=settings.steps,
        intermediate_timesteps=intermediate_angle(settings.steps),
        guidance_scale=settings.text_guidance,
        height=height,
        width=width,
        use_resolution_binning=False,
        latents=torch.from_numpy(inputs.noise.copy()),
        generator=drawn.generator,
        output_type="np",
        callback_on_step_end=drawn.end_round,
    ).images[0]
    return drawn.reference(image)


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


def _open_pipeline(networks: Networks) -> Any:
    """Put the stock pipeline together; its networks' weights need not be there yet."""
    pipeline = SanaSprintPipeline(
        text_encoder=networks.module("text_encoder", attn_implementation="eager"),
        transformer=networks.module("transformer"),
        vae=networks.module("vae"),
        scheduler=networks.setting("scheduler"),
        tokenizer=networks.setting("tokenizer"),
    )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def _check(pipeline: Any, length: int, networks: Networks) -> None:
    for name, known in _CLASSES.items():
        if (found := type(getattr(pipeline, name)).__name__) != known:
            raise InputError(f"{networks.folder}: the {name} is a {found}; supported is {known}")
    positions = pipeline.text_encoder.config.max_position_embeddings
    if length > positions:
        raise InputError(f"{networks.folder}: prompts have {length} tokens, the text encoder takes {positions}")
    if not pipeline.transformer.config.guidance_embeds:
        raise InputError(f"{networks.folder}: a transformer without guidance_embeds is not SANA-Sprint's")
    channels, expected = pipeline.transformer.config.in_channels, pipeline.vae.config.latent_channels
    if channels != expected:
        raise InputError(
            f"{networks.folder}: the transformer takes {channels} channels, its autoencoder has {expected}"
        )


def _latent_shape(pipeline: Any, recipe: Recipe) -> tuple[int, int, int]:
    scale = pipeline.vae_scale_factor * pipeline.transformer.config.patch_size
    if recipe.height % scale or recipe.width % scale:
        raise InputError(f"{recipe.height}×{recipe.width} is not a multiple of {scale}, which the autoencoder needs")
    channels: int = pipeline.vae.config.latent_channels
    return (channels, recipe.height // pipeline.vae_scale_factor, recipe.width // pipeline.vae_scale_factor)


def _parts(pipeline: Any, length: int, latents: tuple[int, int, int]) -> list[Part]:
    width = pipeline.text_encoder.config.hidden_size
    ids = torch.arange(length, dtype=torch.int32)[None] % pipeline.text_encoder.config.vocab_size
    mask = (torch.arange(length, dtype=torch.int32) < length - TEXT_LENGTH // 2).int()[None]
    seen = {
        "latents": _normal(1, *latents),
        "timestep": torch.tensor([0.75]),
        _TEXT_STATES: _normal(1, TEXT_LENGTH, width),
        _TEXT_MASK: (torch.arange(TEXT_LENGTH) < TEXT_LENGTH // 2).float()[None],
        _GUIDANCE: torch.tensor([0.45]),
    }
    encoder = TextEncoder(pipeline.text_encoder, length, TEXT_LENGTH)
    given = {"input_ids": ids, PROMPT_MASK: mask}
    encode = Graph(module=encoder.eval(), inputs=given, outputs=(_TEXT_STATES, _TEXT_MASK), wide=True)
    return [
        Part(name="text_encoder", graphs={"encode": encode}, encodes_text=True),
        _part("denoiser", "predict", Denoiser(pipeline.transformer), seen, "prediction"),
        _part("decoder", "decode", Decoder(pipeline.vae), {"latents": _normal(1, *latents)}, "image"),
    ]


def _part(name: str, function: str, module: nn.Module, inputs: dict[str, Tensor], output: str) -> Part:
    return Part(name=name, graphs={function: Graph(module=module.eval(), inputs=inputs, outputs=(output,))})


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))
