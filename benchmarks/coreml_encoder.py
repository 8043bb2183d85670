"""Size and exactness of a text encoder of 123 M parameters as a Core ML package: `python -m benchmarks.coreml_encoder`.

The encoder is CLIP-like with seeded random weights. Compared are the package's bytes with codes and scales plus all
other weights in the program's own precision, and the interpreter's output with PyTorch holding the same weights.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.encoder_schemes import encoder_part
from exporters.progress import Stages
from exporters.quantize.schemes import Applied, Scheme, apply
from exporters.runtimes.coreml import export_part
from exporters.verify import difference
from exporters.verify_coreml import MilInterpreter
from profiler.records.recipe import EncoderScheme, recipe_of

SCHEMES: tuple[EncoderScheme, ...] = ("fp16", "int8", "nf4")
ALLOWED = 0.03


def ideal_bytes(applied: Applied) -> int:
    """Return codes and scales, scales and all other weights in half precision."""
    count = sum(held.count for held in applied.coded.values())
    coded = sum(held.size_bytes for held in applied.coded.values())
    return coded + 2 * (applied.weights - count)


def measure(scheme: EncoderScheme) -> bool:
    """Export with one scheme, print a row, and tell whether the file is as small as it must be."""
    part = encoder_part()
    applied = apply(part.modules, Scheme(name=scheme, rest="fp16", absmax_dtype=torch.float16))
    (graph,) = part.graphs.values()
    recipe = recipe_of(512, 512, runtime="coreml", text_encoder=scheme)
    with tempfile.TemporaryDirectory() as scratch:
        start_s = time.monotonic()
        component = export_part(part, Path(scratch), recipe, Stages())
        took_s = time.monotonic() - start_s
        size = sum((Path(scratch) / path).stat().st_size for path in component.files)
        call = MilInterpreter().load(part.name, component, Path(scratch))["encode"]
        (found,) = call({name: value.numpy() for name, value in graph.inputs.items()})
    relative = difference(found, graph.run()[0].numpy()).relative
    excess = size / ideal_bytes(applied) - 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{scheme:5} {part.parameters:12,} weights {size:12,} bytes {excess:+7.2%} over ideal "
        f"{relative:8.1e} relative {took_s:6.1f} s {peak:6.0f} MB peak so far",
        flush=True,
    )
    return excess <= ALLOWED


if __name__ == "__main__":
    small = [measure(scheme) for scheme in SCHEMES]  # every row, also after one that is too large
    raise SystemExit(0 if all(small) else 1)
