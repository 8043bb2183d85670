"""A text-to-image or editing loop as one would write it by hand against ONNX Runtime: what the runner is held to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime

from profiler.records.plan import Call, Loop, Plan
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine

Tensors = Mapping[str, npt.NDArray[Any]]


class HandLoop(NamedTuple):
    """`run` makes one uint8 image [H, W, 3] with `calls` calls into the runtime."""

    run: Callable[[], npt.NDArray[np.uint8]]
    calls: int


class OpenEngine(OnnxRuntimeEngine):
    """The product's engine with its sessions laid open, so that both sides run in the very same ones."""

    def __init__(self, *, threads: int | None = None) -> None:
        super().__init__(threads=threads)
        self.sessions: dict[str, onnxruntime.InferenceSession] = {}

    def open(self, name: str, path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
        """Open one graph and remember its session as component.function."""
        session = super().open(name, path, options)
        self.sessions[f"{name}.{path.stem}"] = session
        return session


def hand_loop(plan: Plan, tensors: Tensors, sessions: Mapping[str, onnxruntime.InferenceSession]) -> HandLoop:
    """Write the loop for one plan; only its numbers are read from the plan, and all of them before the first image.

    `tensors` holds the job's inputs and the plan's constants.
    """
    loop = next(step for step in plan.body if isinstance(step, Loop))
    predicts = [call for call in loop.body if isinstance(call, Call) and call.component == "denoiser"]
    branches = [(call.bind["text_states"], call.bind.get("source_latents")) for call in predicts]
    rounds = list(zip(*(tensors[name] for name in ("timesteps", "coefficients", "next_input_scales")), strict=False))
    step_noise = tensors.get("step_noise")
    encode_text, predict = sessions["text_encoder.encode"].run, sessions["denoiser.predict"].run
    start, guide = sessions["guide_step.start"].run, sessions[f"guide_step.guide_{len(branches)}"].run
    encode_image = sessions["image_encoder.encode"].run if plan.task == "edit" else None
    decode = sessions["decoder.decode"].run
    start_names = [port.name for port in sessions["guide_step.start"].get_inputs()]

    def run() -> npt.NDArray[np.uint8]:
        seen = {"text_states": encode_text(None, {"input_ids": tensors["prompt_ids"]})[0]}
        if "negative_ids" in tensors:
            seen["negative_states"] = encode_text(None, {"input_ids": tensors["negative_ids"]})[0]
        if encode_image is not None:
            seen["source_latents"] = encode_image(None, {"source_image": tensors["source_image"]})[0]
        latents, scaled, *history = start(None, {name: tensors[name] for name in start_names})
        for number, (timestep, coefficients, next_scale) in enumerate(rounds):
            feeds = {"guidance_weights": tensors["guidance_weights"], "latents": latents, "coefficients": coefficients}
            feeds["next_input_scale"] = next_scale
            for branch, (text, source) in enumerate(branches, 1):
                wanted = {"latents": scaled, "timestep": timestep, "text_states": seen[text]}
                if source is not None:
                    wanted["source_latents"] = seen[source] if source in seen else tensors[source]
                feeds[f"prediction_{branch}"] = predict(None, wanted)[0]
            if history:
                feeds["history"] = history[0]
            if step_noise is not None:
                feeds["step_noise"] = step_noise[number]
            latents, scaled, *history = guide(None, feeds)
        image = decode(None, {"latents": latents})[0]
        return np.ascontiguousarray(np.rint(image[0]).transpose(1, 2, 0).astype(np.uint8))

    texts = 1 + ("negative_ids" in tensors)
    return HandLoop(run, texts + (encode_image is not None) + 1 + len(rounds) * (len(branches) + 1) + 1)
