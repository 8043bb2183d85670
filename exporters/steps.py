"""The steps of an export that cost memory: making a component, and comparing whole images."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import PIL.Image
from msgspec.structs import replace

from exporters import text_encoder
from exporters.child import ImagesJob, MadeComponent, Origin
from exporters.families import family_of
from exporters.networks import Networks
from exporters.parts import Model, Part
from exporters.progress import Stages
from exporters.runtimes import Runtime, runtime
from exporters.tasks import PlannedTask
from exporters.verify import Verifier, verify_part
from exporters.weights import weights_of
from profiler import codec
from profiler.records.bundle import ImageDifference
from profiler.records.plan import Plan
from profiler.records.recipe import Recipe
from profiler.records.record import Task


class Opened(NamedTuple):
    """A model taken apart, its weights not read yet, and what it is exported to."""

    model: Model
    target: Runtime
    recipe: Recipe


def open_origin(origin: Origin) -> Opened:
    """Take a model apart. Raises InputError where it cannot be loaded or expressed."""
    networks = Networks(Path(origin.folder), weights_of(origin.weights))
    model = family_of(origin.spec.family).load(networks, origin.recipe)
    return Opened(model, runtime(origin.recipe.runtime), origin.recipe)


def make_component(part: Part, target: Runtime, folder: Path, recipe: Recipe, stages: Stages) -> MadeComponent:
    """Read and code a part's weights, export it below a folder, and compare what came out with it.

    Raises ModelError where it cannot be exported or does not run. Nothing is compared where nothing here runs it.
    """
    stages.begin(f"weights of {part.name}")
    part.fill(recipe)
    quantized = text_encoder.quantize(part, recipe)
    component = target.export_part(part, folder, recipe, stages)
    if quantized is not None:
        component = replace(component, quantization=text_encoder.record_of(quantized, component, folder))
    stages.begin(f"verify {part.name}")
    runs_here = target.unverified(recipe) is None
    difference = verify_part(part, component, folder, target.engine()) if runs_here else None
    return MadeComponent(component=component, difference=difference)


def stages_of(part: Part) -> int:
    """Count the stages that making a part tells."""
    return 2 + len(part.graphs)


def compare_images(opened: Opened, job: ImagesJob, stages: Stages) -> dict[Task, ImageDifference]:
    """Compare a bundle's images with those of the model's own loop, all of whose weights are read for it.

    Raises BeyondTolerance, or ModelError where something does not run.
    """
    model, folder = opened.model, Path(job.bundle)
    stages.begin("weights of the source")
    for part in model.parts.values():
        part.fill(opened.recipe)
        text_encoder.code(part, opened.recipe)
    planned = {task: _planned(job, task) for task in job.tasks}
    verifier = Verifier(model, job.components, folder, opened.target.engine(), stages)
    return verifier.verify(planned, opened.recipe, job.differences)


def _planned(job: ImagesJob, task: Task) -> PlannedTask:
    """Read a task back from its files."""
    folder, written = Path(job.bundle), job.tasks[task]
    picture = written.defaults.source_image
    return PlannedTask(
        settings=job.settings[task],
        source=None if picture is None else np.array(PIL.Image.open(folder / picture), dtype=np.uint8),
        plan=codec.read(folder / written.plan, Plan),
        defaults=written.defaults,
    )
