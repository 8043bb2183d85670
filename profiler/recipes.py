"""What a recipe is where nothing else was asked for: defaults by runtime, tolerances by precision."""

from __future__ import annotations

from typing import NamedTuple

from profiler.errors import InputError
from profiler.records.recipe import ComputeUnit, EncoderScheme, LoadPolicy, Precision, Recipe, Runtime


class Defaults(NamedTuple):
    """What a runtime is exported for."""

    precision: Precision
    text_encoder: EncoderScheme
    compute_unit: ComputeUnit


class Tolerance(NamedTuple):
    """How far an image may be from the fp32 source's, as in a recipe."""

    relative: float
    uint8_levels: int
    uint8_share: float


DEFAULTS: dict[Runtime, Defaults] = {
    "onnx": Defaults("fp32", "fp32", "cpu"),
    "executorch": Defaults("fp32", "fp32", "cpu"),
    # Its GPU and Neural Engine compute in float16; its table form of four bits is experimental.
    "coreml": Defaults("fp16", "int8", "all"),
}
# float16 keeps 11 bits, so each operation is off by up to 4.9e-4 of its result, and a denoiser's loop adds those up.
# Measured through Core ML programs: image 3.3e-4 (nano, 1 level on 10 % of values) to 3.8e-3 (small random U-Nets with
# amplified layers, 1 level on 13 %). A level is 3.9e-3 of the range, so two of them are what 1e-2 comes to.
TOLERANCES: dict[Precision, Tolerance] = {
    "fp32": Tolerance(relative=1e-3, uint8_levels=1, uint8_share=0.01),
    "fp16": Tolerance(relative=1e-2, uint8_levels=2, uint8_share=0.5),
}


def recipe_for(
    runtime: Runtime,
    *,
    height: int,
    width: int,
    load_policy: LoadPolicy = "resident",
    precision: Precision | None = None,
    text_encoder: EncoderScheme | None = None,
    kept: tuple[str, ...] = (),
) -> Recipe:
    """Fill in what was not asked for; the tolerance is that of the lowest precision that is computed in."""
    default = DEFAULTS[runtime]
    computed, scheme = precision or default.precision, text_encoder or default.text_encoder
    allowed = TOLERANCES["fp16" if "fp16" in (computed, scheme) else "fp32"]
    return Recipe(
        runtime=runtime,
        precision=computed,
        text_encoder=scheme,
        kept=kept,
        compute_unit="cpu_gpu" if (runtime, scheme) == ("coreml", "nf4") else default.compute_unit,
        load_policy=load_policy,
        height=height,
        width=width,
        relative_tolerance=allowed.relative,
        uint8_max_levels=allowed.uint8_levels,
        uint8_changed_share=allowed.uint8_share,
    )


def check_compute_unit(recipe: Recipe) -> None:
    """Raise InputError for a scheme on a unit that does not load it."""
    if (recipe.runtime, recipe.text_encoder, recipe.compute_unit) == ("coreml", "nf4", "all"):
        raise InputError(
            "an NF4 text encoder does not load on the Neural Engine",
            hint="Use compute unit cpu_gpu, or --text-encoder int8 (github.com/apple/coremltools, pull request 2688).",
        )
