"""What a bundle ships to run on: prompts as token ids, seeded noise, a source picture, the blank source's latents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import PIL.Image
from safetensors.numpy import save

from exporters.conditioning import NEGATIVE_IDS, NEGATIVE_MASK, PROMPT_IDS, PROMPT_MASK, SOURCE_IMAGE
from exporters.parts import Floats, Model, image_tensor
from profiler.errors import MissingSource
from profiler.prompts import Encoded, encode
from profiler.records.bundle import DefaultInputs, PromptForm
from profiler.records.plan import Plan, Port
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

Pixels = npt.NDArray[np.uint8]
# A prompt, and whether it is the negative one, to its ids and mask.
Words = Callable[[str, bool], Encoded]


def write_default_inputs(
    plan: Plan, settings: TaskDefaults, source: Pixels | None, words: Words, folder: Path
) -> DefaultInputs:
    """Write the tensors that a plan's ports ask for, and the picture they hold where there is one."""
    relative = f"inputs/{plan.task}"
    (folder / "inputs").mkdir(exist_ok=True)
    # save_file would make the file readable for its owner only.
    (folder / f"{relative}.safetensors").write_bytes(save(job_inputs(plan, settings, source, words)))
    if source is not None:
        PIL.Image.fromarray(source).save(folder / f"{relative}_source.png")
    return DefaultInputs(
        path=f"{relative}.safetensors",
        prompt=settings.prompt,
        negative_prompt=settings.negative_prompt,
        seed=settings.seed,
        source_image=None if source is None else f"{relative}_source.png",
    )


def job_inputs(
    plan: Plan, settings: TaskDefaults, source: Pixels | None, words: Words
) -> dict[str, npt.NDArray[np.generic]]:
    """Make a plan's inputs; the start noise comes before the step noise, so more steps keep what fewer had."""
    generator = np.random.Generator(np.random.PCG64(settings.seed))
    tensors: dict[str, npt.NDArray[np.generic]] = {}
    for port in plan.inputs:
        if port.name in (PROMPT_IDS, PROMPT_MASK):
            tensors[port.name] = _of(words(settings.prompt, False), port.name == PROMPT_MASK)
        elif port.name in (NEGATIVE_IDS, NEGATIVE_MASK):
            tensors[port.name] = _of(words(settings.negative_prompt, True), port.name == NEGATIVE_MASK)
        elif port.name == SOURCE_IMAGE and source is not None:
            tensors[port.name] = image_tensor(source)
        else:
            tensors[port.name] = _normal(generator, port)
    return tensors


def _of(encoded: Encoded, wants_mask: bool) -> npt.NDArray[np.int32]:
    return encoded.mask if wants_mask else encoded.ids


def words_of(tokenizer: Path, form: PromptForm) -> Words:
    """Return what encodes a task's prompts."""

    def words(prompt: str, negative: bool) -> Encoded:
        return encode(tokenizer, form, prompt, negative=negative)

    return words


def write_constants(model: Model, path: Path) -> None:
    """Write the tensors that plans share, where the model has any."""
    if model.constants:
        path.write_bytes(save({name: make() for name, make in sorted(model.constants.items())}))


def source_picture(task: Task, settings: TaskDefaults, registry: Path, model: Model) -> Pixels | None:
    """Return an edit's source image at the model's size, from its file or drawn. Raises MissingSource."""
    if task != "edit":
        return None
    _, height, width = model.image
    if settings.source_image is None:
        return draw_test_picture(height, width)
    path = registry / settings.source_image
    try:
        with PIL.Image.open(path) as picture:
            fitted = picture.convert("RGB").resize((width, height), PIL.Image.Resampling.LANCZOS)
    except OSError as error:
        raise MissingSource(f"cannot read the source image {path}: {error}") from error
    return np.array(fitted, dtype=np.uint8)


def draw_test_picture(height: int, width: int) -> Pixels:
    """Draw a disc over a two-way colour gradient."""
    y, x = np.mgrid[0:height, 0:width]
    down, across = y / max(1, height - 1), x / max(1, width - 1)
    picture = np.stack([255 * across, 255 * down, 255 * (1 - across)], axis=-1)
    picture[np.hypot(down - 0.5, across - 0.5) < 0.25] = (230, 200, 40)
    return np.asarray(np.rint(picture), dtype=np.uint8)


def _normal(generator: np.random.Generator, port: Port) -> Floats:
    return generator.standard_normal(port.shape, dtype=np.float32)
