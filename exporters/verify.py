"""Compares an exported bundle with its source: each component on the same inputs, each task's image by both loops."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file

from exporters.parts import Model, Part, Reference, ReferenceInputs
from exporters.progress import Stages
from exporters.quiet import quiet
from exporters.tasks import PlannedTask
from profiler.errors import BeyondTolerance, ModelError
from profiler.records.bundle import Component, Difference, ImageDifference
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.runner.engines.engine import Engine, EngineFailure
from profiler.runner.interpreter import Image, Interpreter, to_pixels

Array = npt.NDArray[np.floating[Any]]


def verify_part(part: Part, component: Component, folder: Path, engine: Engine) -> Difference:
    """Run a component beside its source on the part's example inputs. Raises ModelError where it does not run."""
    # One after the other, because what a large network computes with takes as much memory as its weights.
    expected = {name: [output.numpy() for output in graph.run()] for name, graph in part.graphs.items()}
    try:
        calls = engine.load(part.name, component, folder)
        found = []
        for name, graph in part.graphs.items():
            exported = calls[name]({port: value.numpy() for port, value in graph.inputs.items()})
            found += [difference(a, b) for a, b in zip(exported, expected[name], strict=True)]
    except EngineFailure as error:
        raise _does_not_run(error, engine) from error
    return Difference(
        max_absolute=max(each.max_absolute for each in found), relative=max(each.relative for each in found)
    )


def _does_not_run(error: EngineFailure, engine: Engine) -> ModelError:
    return ModelError(f"the exported {error.component} does not run in {engine.name}: {error}")


class Verifier:
    """Runs a bundle's plans beside their source's own loop."""

    def __init__(
        self, model: Model, components: Mapping[str, Component], folder: Path, engine: Engine, stages: Stages
    ) -> None:
        self._model = model
        self._components = components
        self._folder = folder
        self._engine = engine
        self._stages = stages

    def verify(
        self, planned: Mapping[Task, PlannedTask], recipe: Recipe, parts: Mapping[str, Difference]
    ) -> dict[Task, ImageDifference]:
        """Compare all images; `parts` tells how far components are off, to name one where an image is.

        Raises BeyondTolerance, or ModelError where something does not run.
        """
        try:
            images = {task: self._verify_task(task, chosen) for task, chosen in planned.items()}
        except EngineFailure as error:
            raise _does_not_run(error, self._engine) from error
        for task, found in images.items():
            check_tolerance(task, found, recipe, parts)
        return images

    def _verify_task(self, task: Task, planned: PlannedTask) -> ImageDifference:
        self._stages.begin(f"verify {task}")
        inputs: dict[str, Any] = load_file(self._folder / planned.defaults.path)
        with quiet():  # a pipeline says much of what it does with a long prompt
            reference = self._model.run_reference(self._reference_inputs(task, planned, inputs))
        if not np.isfinite(reference.image).all():
            raise ModelError(f"the source itself makes an image with undefined values for {task}")
        if "step_noise" in inputs:  # the source's scheduler can draw noise, but cannot be given any
            inputs["step_noise"] = reference.step_noise
        interpreter = Interpreter(planned.plan, self._components, self._folder, self._engine)
        interpreter.prepare()
        return image_difference(interpreter.run(inputs), reference)

    def _reference_inputs(self, task: Task, planned: PlannedTask, inputs: Mapping[str, Any]) -> ReferenceInputs:
        return ReferenceInputs(task=task, settings=planned.settings, noise=inputs["noise"], source_image=planned.source)


def image_difference(image: Image, reference: Reference) -> ImageDifference:
    """Compare a bundle's image with the one that the source's own loop made."""
    levels = np.abs(image.pixels.astype(np.int16) - to_pixels(reference.image).astype(np.int16))
    return ImageDifference(
        float_image=difference(image.float_image, reference.image),
        uint8_max_levels=int(levels.max()),
        uint8_changed_share=float((levels > 0).mean()),
    )


def difference(output: Array, reference: Array) -> Difference:
    """Return ‖a − b‖∞ and ‖a − b‖₂ / ‖b‖₂, in float64; where b is all zero the latter is ‖a‖₂."""
    off = np.asarray(output, dtype=np.float64) - np.asarray(reference, dtype=np.float64)
    size = float(np.linalg.norm(np.asarray(reference, dtype=np.float64)))
    return Difference(
        max_absolute=float(np.abs(off).max(initial=0.0)), relative=float(np.linalg.norm(off)) / (size or 1.0)
    )


def check_tolerance(task: Task, found: ImageDifference, recipe: Recipe, parts: Mapping[str, Difference]) -> None:
    """Raise BeyondTolerance where an image is further off than allowed, and name the component that is furthest off."""
    floats, allowed = found.float_image.relative, recipe.relative_tolerance
    levels, share = found.uint8_max_levels, found.uint8_changed_share
    if not floats <= allowed:  # so for NaN too
        excess = f"{floats:.2e} (relative) away from its source's, the recipe allows {allowed:.0e}"
    elif levels > recipe.uint8_max_levels or not share <= recipe.uint8_changed_share:
        excess = (
            f"up to {levels} levels away from its source's on {share:.2%} of values, "
            f"the recipe allows {recipe.uint8_max_levels} on {recipe.uint8_changed_share:.0%}"
        )
    else:
        return
    worst = max(parts, key=lambda name: (np.isnan(parts[name].relative), parts[name].relative))
    raise BeyondTolerance(
        f"the exported {task} image is {excess}",
        hint=f"Component furthest off: {worst} ({parts[worst].relative:.2e}). No bundle was written.",
    )
