"""The text encoder's scheme: applied to the source's own modules, and told of in the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from exporters.parts import Part
from exporters.quantize import nf4
from exporters.quantize.schemes import Applied, Scheme, apply, check_kept
from exporters.verify import difference
from profiler.errors import InputError
from profiler.records.bundle import Component, Difference, Quantization
from profiler.records.recipe import Recipe

_ABSMAX: dict[torch.dtype, Literal["float32", "float16"]] = {torch.float32: "float32", torch.float16: "float16"}


@dataclass(frozen=True, kw_only=True)
class Quantized:
    """What was done to a part, and how far its output moved, where that says anything."""

    applied: Applied
    from_fp32: Difference | None


def check_scheme(title: str, parts: Sequence[Part], recipe: Recipe) -> None:
    """Raise InputError for a scheme that a model has no part for, or patterns that mean none of its weights."""
    encoders = [part for part in parts if part.encodes_text]
    if recipe.text_encoder == "fp32":
        if recipe.kept:
            raise InputError("layers can be kept only where a text-encoder scheme changes the others")
    elif not encoders:
        raise InputError(f"{title} has no text encoder to quantize")
    check_kept([module for part in encoders for module in part.modules], recipe.kept)


def quantize(part: Part, recipe: Recipe) -> Quantized | None:
    """Code a text encoder's weights in place and tell what that did.

    From now on the model is its own reference with these weights. Returns None for other parts, and where the recipe
    leaves them alone. Raises ModelError for undefined weights.
    """
    # Random weights have no meaning that coding them could blur.
    before = _outputs(part) if _is_coded(part, recipe) and not part.random else None
    applied = code(part, recipe)
    if applied is None:
        return None
    return Quantized(applied=applied, from_fp32=None if before is None else difference(_outputs(part), before))


def code(part: Part, recipe: Recipe) -> Applied | None:
    """Code a text encoder's weights in place; None for other parts, and where the recipe leaves them alone."""
    if not _is_coded(part, recipe):
        return None
    # Core ML has one float type a program: scales are as wide as what it computes in.
    halves = recipe.runtime == "coreml" and recipe.precision == "fp16"
    scheme = Scheme(
        name=recipe.text_encoder,
        kept=recipe.kept,
        rest=recipe.precision,
        absmax_dtype=torch.float16 if halves else torch.float32,
    )
    return apply(part.modules, scheme)


def _is_coded(part: Part, recipe: Recipe) -> bool:
    return recipe.text_encoder != "fp32" and part.encodes_text and bool(part.parameters)


def reference_title(title: str, recipe: Recipe) -> str:
    """Say in the reference's name which weights its text encoder holds."""
    if recipe.text_encoder == "fp32":
        return title
    return f"{title}, its text encoder holding the same {recipe.text_encoder} weights"


def record_of(quantized: Quantized, component: Component, folder: Path) -> Quantization:
    """Return what the manifest says of a component whose weights were coded."""
    applied = quantized.applied
    nf4_used = applied.scheme.name == "nf4"
    file_bytes = sum((folder / path).stat().st_size for path in set(component.files))
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
