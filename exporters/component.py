"""One component: its weights read and coded, its graphs exported, and what came out compared with its source."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from exporters import text_encoder
from exporters.parts import Part
from exporters.progress import Stages
from exporters.runtimes import Runtime
from exporters.verify import verify_part
from profiler.records.bundle import Component, Difference
from profiler.records.recipe import Recipe
from profiler.records.record import Record


class MadeComponent(Record):
    """A component below its folder; `difference` is None where it cannot run here."""

    component: Component
    difference: Difference | None


def make_component(part: Part, target: Runtime, folder: Path, recipe: Recipe, stages: Stages) -> MadeComponent:
    """Export a part below a folder. Raises ModelError where it cannot be exported or does not run."""
    stages.begin(f"weights of {part.name}")
    part.fill(recipe)
    quantized = text_encoder.quantize(part, recipe)
    component = target.export_part(part, folder, recipe, stages)
    if quantized is not None:
        component = replace(component, quantization=text_encoder.record_of(quantized, component, folder))
    stages.begin(f"verify {part.name}")
    return MadeComponent(component=component, difference=verify_part(part, component, folder, target.engine()))


def stages_of(part: Part) -> int:
    """Count the stages that making a part tells."""
    return 2 + len(part.graphs)
