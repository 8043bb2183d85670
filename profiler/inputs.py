"""A job's inputs: token ids, noise and source image, made from words, a seed and a file."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from profiler.bundle_files import inside, load_plan, load_schedules, sync_file
from profiler.errors import InputError, InvalidRecord, MissingSource
from profiler.plan_rules import check_plan
from profiler.prompts import PLAIN, encode
from profiler.records.bundle import Bundle
from profiler.records.job import InputFile
from profiler.records.plan import Plan, Port
from profiler.records.record import Task
from profiler.runner.interpreter import file_constants

Tensors = dict[str, npt.NDArray[Any]]


class JobInputs(NamedTuple):
    """Tensors as bytes of a safetensors file, and what they were made from; `notes` is what a user should hear."""

    data: bytes
    sha256: str
    prompt: str
    negative_prompt: str
    seed: int
    source_image: str | None
    source_png: bytes | None
    notes: tuple[str, ...] = ()
    made_up: tuple[str, ...] = ()


class Wishes(NamedTuple):
    """What the user asked for; None keeps the bundle's default."""

    prompt: str | None = None
    negative_prompt: str | None = None
    seed: int | None = None
    steps: int | None = None
    image: Path | None = None


def plan_for(folder: Path, bundle: Bundle, task: Task, steps: int | None) -> Plan:
    """Return the task's plan at a step count.

    Raises InputError where the bundle has no schedule for it, InvalidRecord where the plan is broken.
    """
    plan = _at_steps(folder, bundle, load_plan(folder, bundle, task), steps)
    if plan.task != task:
        raise InvalidRecord(f"{folder}: the plan for {task!r} says that it is for {plan.task!r}")
    if plan.constants_file is not None and plan.constants_file not in {entry.path for entry in bundle.files}:
        raise InvalidRecord(f"{folder}: the plan uses {plan.constants_file!r}, which the manifest does not list")
    try:
        constants = file_constants(plan, folder)
    except (SafetensorError, OSError) as error:
        raise InvalidRecord(f"{folder / str(plan.constants_file)} is no safetensors file: {error}") from error
    check_plan(plan, bundle.components, constants)
    return plan


def _at_steps(folder: Path, bundle: Bundle, plan: Plan, steps: int | None) -> Plan:
    if steps is None or steps == plan.steps:
        return plan
    schedules = load_schedules(folder, bundle, plan.task)
    if steps not in schedules.constants_by_steps:
        known = sorted(schedules.constants_by_steps)
        raise InputError(f"{bundle.model} has no schedule for {steps} steps", hint=f"It has {_ranges(known)} steps.")
    constants = schedules.constants_by_steps[steps]
    if not any(constant.shape for constant in constants.values()):
        raise InvalidRecord(f"{folder}: the schedule for {steps} steps is empty")
    rounds = max(constant.shape[0] for constant in constants.values() if constant.shape)
    return msgspec.structs.replace(
        plan,
        steps=steps,
        constants={**plan.constants, **constants},
        inputs=tuple(_with_rounds(port, rounds) for port in plan.inputs),
    )


def job_inputs(folder: Path, bundle: Bundle, plan: Plan, wishes: Wishes) -> JobInputs:
    """Make a plan's inputs: the bundle's default set, changed where the user wished. Raises InputError."""
    defaults = bundle.tasks[plan.task].defaults
    tensors = _default_tensors(inside(folder, defaults.path))
    ports = {port.name: port for port in plan.inputs}
    prompt = _text(wishes.prompt, defaults.prompt)
    negative = _text(wishes.negative_prompt, defaults.negative_prompt)
    seed = wishes.seed if wishes.seed is not None else defaults.seed
    notes: list[str] = []
    if prompt != defaults.prompt or negative != defaults.negative_prompt:
        words, notes = prompt_tensors(folder, bundle, plan, prompt, negative)
        tensors |= words
    if seed != defaults.seed:
        _check_takes_noise(bundle, ports)
    if seed != defaults.seed or plan.steps != load_plan(folder, bundle, plan.task).steps:
        tensors |= noise_for(plan, seed)
    if wishes.image is not None:
        if "source_image" not in ports:
            raise InputError(f"the task {plan.task!r} takes no source image", hint="Use --task edit with --image.")
        tensors["source_image"] = read_image(wishes.image, ports["source_image"])
    tensors = {name: _checked(tensors, port) for name, port in ports.items()}
    data = save(tensors)
    return JobInputs(
        data=data,
        sha256=hashlib.sha256(data).hexdigest(),
        prompt=prompt,
        negative_prompt=negative,
        seed=seed,
        source_image=_source_name(tensors, wishes),
        source_png=_png(tensors["source_image"]) if "source_image" in tensors else None,
        notes=tuple(notes),
        made_up=defaults.made_up,
    )


def write_inputs(inputs: JobInputs, path: Path) -> InputFile:
    """Write the tensors into a runner's storage."""
    path.write_bytes(inputs.data)
    sync_file(path)
    return InputFile(path=path.name, sha256=inputs.sha256)


def _check_takes_noise(bundle: Bundle, ports: Mapping[str, Port]) -> None:
    if bundle.prompt_encoding is None and "noise" not in ports:
        raise InputError(f"{bundle.model} takes no noise of its own", hint="Wrap it again with another --seed.")


def noise_for(plan: Plan, seed: int) -> Tensors:
    """Draw standard normal noise (PCG64, float32): `noise` first, then `step_noise` where the plan takes it."""
    generator = np.random.Generator(np.random.PCG64(seed))
    shapes = {port.name: port.shape for port in plan.inputs}
    names = [name for name in ("noise", "step_noise") if name in shapes]
    return {name: generator.standard_normal(shapes[name], dtype=np.float32) for name in names}


def read_image(path: Path, port: Port) -> npt.NDArray[np.float32]:
    """Read an image file as float32 [1, 3, height, width] of 0–255, resized to the port. Raises InputError."""
    if not path.is_file():
        raise MissingSource(f"no image at {path}")
    _, _, height, width = port.shape
    try:
        with warnings.catch_warnings(), Image.open(path) as image:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # beyond twice that size it is an error
            picture = _eight_bit(ImageOps.exif_transpose(image))
            pixels = np.asarray(
                picture.convert("RGB").resize((width, height), Image.Resampling.LANCZOS), dtype=np.float32
            )
    except Exception as error:
        raise InputError(f"{path} is not an image that can be read: {error}") from error
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[None])


def _eight_bit(image: Image.Image) -> Image.Image:
    """Scale 16-bit grey, which `convert` would cut off at 255. Raises InputError where the range is unknown."""
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) // 256).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise InputError(f"its pixels are {image.mode}, without a known range; save it with 8 or 16 bits a channel")
    return image


def _default_tensors(path: Path) -> Tensors:
    try:
        return dict(load_file(str(path)))
    except (SafetensorError, OSError) as error:
        raise InvalidRecord(f"{path} is no safetensors file: {error}") from error


def prompt_tensors(folder: Path, bundle: Bundle, plan: Plan, prompt: str, negative: str) -> tuple[Tensors, list[str]]:
    """Encode the prompts that a plan takes; return their tensors and what a user should hear about them."""
    encoding = bundle.prompt_encoding
    if encoding is None:
        raise InputError(f"{bundle.model} takes no words", hint="Its inputs are set when it is wrapped: --inputs FILE.")
    form = encoding.forms.get(plan.task, PLAIN)
    tensors: Tensors = {}
    notes = []
    for name, text in (("prompt", prompt), ("negative", negative)):
        found = encode(inside(folder, encoding.tokenizer), form, text, negative=name == "negative")
        tensors |= {f"{name}_ids": found.ids, f"{name}_mask": found.mask}
        if found.dropped:
            kept = form.limit or encoding.length
            notes.append(f"only the first {kept} tokens of {text!r} are used; the model takes no more")
    return tensors, notes


def _checked(tensors: Tensors, port: Port) -> npt.NDArray[Any]:
    tensor = tensors.get(port.name)
    if tensor is None or tensor.shape != port.shape or tensor.dtype != port.dtype:
        got = "nothing" if tensor is None else f"{tensor.dtype}{list(tensor.shape)}"
        raise InputError(f"the input {port.name!r} must be {port.dtype}{list(port.shape)}, the bundle gives {got}")
    return np.ascontiguousarray(tensor)


def _with_rounds(port: Port, rounds: int) -> Port:
    if port.name != "step_noise":
        return port
    return msgspec.structs.replace(port, shape=(rounds, *port.shape[1:]))


def _text(wish: str | None, default: str) -> str:
    text = default if wish is None else wish
    if not _is_unicode(text):
        raise InputError(f"the prompt {text!r} is not valid UTF-8")
    return text


def _is_unicode(text: str) -> bool:
    return text == text.encode(errors="replace").decode()


def _source_name(tensors: Tensors, wishes: Wishes) -> str | None:
    if "source_image" not in tensors:
        return None
    return wishes.image.name.encode(errors="replace").decode() if wishes.image is not None else "the bundle's own"


def _png(source: npt.NDArray[np.float32]) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.rint(source[0]).transpose(1, 2, 0).astype(np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def _ranges(numbers: list[int]) -> str:
    if numbers and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(str(number) for number in numbers)
