"""The text encoder's scheme: applied to the source's own modules, and told of in the manifest."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
import torch

from exporters.parts import TEXT_ENCODER, Model, Part
from exporters.quantize import nf4
from exporters.quantize.schemes import Applied, Scheme, apply
from exporters.verify import difference
from profiler.errors import InputError
from profiler.records.bundle import BundleFile, Component, Difference, Quantization
from profiler.records.recipe import Recipe

_ABSMAX: dict[torch.dtype, Literal["float32", "float16"]] = {torch.float32: "float32", torch.float16: "float16"}


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """What was done to the text encoder, and how far its output moved."""

    applied: Applied
    from_fp32: Difference


def quantize(model: Model, recipe: Recipe) -> Quantized | None:
    """Code the text encoder's weights in place; from now on the model is its own reference with these weights.

    Returns None where the recipe leaves them alone. Raises InputError for a model without a text encoder or a pattern
    that matches nothing, ModelError for undefined weights.
    """
    if recipe.text_encoder == "fp32":
        if recipe.kept:
            raise InputError("layers can be kept only where a text-encoder scheme changes the others")
        return None
    part = model.parts.get(TEXT_ENCODER)
    if part is None:
        raise InputError(f"{model.title} has no text encoder to quantize")
    before = _outputs(part)
    # Core ML has one float type a program: scales are as wide as what it computes in.
    halves = recipe.runtime == "coreml" and recipe.precision == "fp16"
    scheme = Scheme(
        name=recipe.text_encoder,
        kept=recipe.kept,
        rest=recipe.precision,
        absmax_dtype=torch.float16 if halves else torch.float32,
    )
    applied = apply(part.modules, scheme)
    return Quantized(applied=applied, from_fp32=difference(_outputs(part), before))


def reference_title(model: Model, recipe: Recipe) -> Model:
    """Say in the reference's name which weights its text encoder holds."""
    if recipe.text_encoder == "fp32":
        return model
    return dataclasses.replace(
        model, title=f"{model.title}, its text encoder holding the same {recipe.text_encoder} weights"
    )


def described(
    components: Mapping[str, Component], quantized: Quantized | None, files: tuple[BundleFile, ...]
) -> dict[str, Component]:
    """Return the components, the text encoder's with what was done to it."""
    if quantized is None:
        return dict(components)
    sizes = {entry.path: entry.size_bytes for entry in files}
    component = components[TEXT_ENCODER]
    record = _record(quantized, sum(sizes[path] for path in set(component.files)))
    return {**components, TEXT_ENCODER: msgspec.structs.replace(component, quantization=record)}


def _record(quantized: Quantized, file_bytes: int) -> Quantization:
    applied = quantized.applied
    nf4_used = applied.scheme.name == "nf4"
    return Quantization(
        scheme=applied.scheme.name,
        block=nf4.BLOCK if nf4_used else None,
        absmax_dtype=_ABSMAX[applied.scheme.absmax_dtype] if nf4_used else None,
        bits_per_weight=8 * file_bytes / applied.weights,
        coverage=applied.coverage,
        kept=applied.kept,
        fallen_back=applied.fallen_back,
        tied=applied.tied,
        tied_saved_bytes=applied.saved_bytes,
        ideal_bytes=applied.ideal_bytes,
        file_bytes=file_bytes,
        from_fp32=quantized.from_fp32,
    )


def _outputs(part: Part) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return all outputs on the part's example inputs, one after the other."""
    return np.concatenate([output.numpy().ravel() for graph in part.graphs.values() for output in graph.run()])
