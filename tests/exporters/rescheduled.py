"""A bundle's networks under another scheduler, step count or load policy, without exporting the networks again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from exporters.families import stable_diffusion
from exporters.guide_step import guide_step
from exporters.networks import Networks
from exporters.parts import Model, Part
from exporters.progress import Stages
from exporters.runtimes.onnx import export_part
from exporters.schedules import fresh, tabulate
from exporters.tasks import PlannedTask, Planner
from exporters.verify import Verifier
from profiler.records.bundle import Component, ImageDifference
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine
from tests.exporters.conftest import Exported
from tests.exporters.small_pipelines import small_recipe


class Rescheduler:
    """Verifies images of one exported bundle; its guide_step graphs are shared by schedulers of the same form."""

    def __init__(self, exported: Exported, folder: Path, family: Any = stable_diffusion) -> None:
        shutil.copytree(exported.folder, folder)
        self._family = family
        self._exported = exported
        self._folder = folder
        self._graphs: dict[tuple[str, str], Component] = {}

    def image_difference(
        self, task: Task, settings: TaskDefaults, *, scheduler: Any = None, recipe: Recipe | None = None
    ) -> ImageDifference:
        """Plan a task anew and compare its image with the source's."""
        recipe = recipe or small_recipe()
        model, planned, components = self._plan(task, settings, scheduler, recipe)
        verifier = Verifier(model, components, self._folder, OnnxRuntimeEngine(threads=1), Stages())
        return verifier.verify({task: planned}, recipe, self._exported.bundle.verification.components)[task]

    def _plan(
        self, task: Task, settings: TaskDefaults, scheduler: Any, recipe: Recipe
    ) -> tuple[Model, PlannedTask, dict[str, Component]]:
        model: Model = self._family.load(Networks(self._exported.source), recipe)
        if scheduler is not None:
            model = with_scheduler(model, scheduler)
        table = tabulate(model.scheduler, model.schedulers, [settings.steps], ())
        part = _needed(guide_step(table, model.latents, 3), len(model.condition(task, settings).branches))
        guide = self._export(part, f"{table.terms}_{table.stochastic}")
        components = {**self._exported.bundle.components, "guide_step": guide}
        planner = Planner(
            model=model, recipe=recipe, table=table, components=components, pictures=self._folder, folder=self._folder
        )
        return model, planner.plan(task, settings), components

    def _export(self, part: Part, form: str) -> Component:
        for name, graph in part.graphs.items():
            if (form, name) not in self._graphs:
                alone = Part(name=f"guide_{form}", graphs={name: graph})
                self._graphs[form, name] = export_part(alone, self._folder, small_recipe(), Stages())
        made = [self._graphs[form, name] for name in part.graphs]
        functions = {name: function for component in made for name, function in component.functions.items()}
        return Component(functions=functions, files=(), parameters=0, precision="fp32")


def _needed(part: Part, branches: int) -> Part:
    return Part(name=part.name, graphs={name: part.graphs[name] for name in ("start", f"guide_{branches}")})


def with_scheduler(model: Model, scheduler: Any) -> Model:
    """Give a loaded model, and the pipeline behind its reference, another scheduler."""
    pipeline = model.run_reference.args[0]  # type: ignore[attr-defined]
    pipeline.scheduler = scheduler
    return replace(model, scheduler=type(scheduler).__name__, schedulers=fresh(scheduler))


def changed(settings: TaskDefaults, **changes: Any) -> TaskDefaults:
    """Return settings with some replaced."""
    return msgspec.structs.replace(settings, **changes)
