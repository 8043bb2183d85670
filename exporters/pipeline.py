"""The export itself: model and recipe in, verified bundle out."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from exporters import default_inputs, plans, prompts, schedules, sources, text_encoder
from exporters.child import ComponentJob, ImagesJob, MadeComponent, Origin
from exporters.children import CHILD_FROM_PARAMETERS, Children, TellMaking, alone, bring, say_nothing
from exporters.families import Family, family_of
from exporters.guide_step import guide_step
from exporters.parts import Model, Part
from exporters.preflight import check_room, room_for
from exporters.progress import Progress, Stages, silent
from exporters.quiet import quiet
from exporters.runtimes import Runtime, check_expresses, runtime
from exporters.schedules import ScheduleTable
from exporters.sources import Located, settings_sha256
from exporters.steps import make_component, open_origin, stages_of
from exporters.tasks import TOKENIZER, PlannedTask, Planner
from exporters.verify import Verifier
from profiler import __version__, codec
from profiler.bundle_files import MANIFEST, check_free, describe, written_whole
from profiler.errors import InputError
from profiler.records.bundle import (
    Bundle,
    BundleFile,
    Component,
    Difference,
    PromptEncoding,
    Source,
    TaskPlan,
    Verification,
)
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import ModelSpec, TaskDefaults

_TOOLS = ("torch", "diffusers", "transformers", "tokenizers")
_SETTINGS = "pipeline"
_NOT_AT_RANDOM = "whole images of random weights say nothing that their components do not"


def export(
    spec: ModelSpec,
    recipe: Recipe,
    destination: Path,
    *,
    tasks: Mapping[Task, TaskDefaults] | None = None,
    weights: str = "",
    progress: Progress = silent,
    tell_making: TellMaking = say_nothing,
    child_from: int = CHILD_FROM_PARAMETERS,
) -> Bundle:
    """Export a model as a verified bundle in a new folder; on any error nothing is left there.

    `tasks` replaces the spec's tasks and their settings; `weights` may be `random:SEED`. Components of `child_from`
    parameters and more are made in processes of their own; `tell_making` hears what each of those took. Raises
    InputError (and MissingSource) for what cannot be loaded or expressed, ModelError for what torch cannot export,
    BeyondTolerance for what came out different.
    """
    check_free(destination)
    settings = dict(tasks or spec.tasks)
    family, target = family_of(spec.family), runtime(recipe.runtime)
    check_expresses(recipe, target)
    stages = Stages(progress)
    with alone(destination) as waiting, written_whole(destination) as folder:
        stages.begin("load")
        located = _located(spec, family, weights, waiting / _SETTINGS)
        origin = Origin(spec=spec, recipe=recipe, folder=str(located.folder), weights=weights)
        model = _open(origin, settings)
        stages.begin("schedules")
        table, guide = _schedule(model, settings)
        parts = [*model.parts.values(), guide]
        check_room(parts, recipe, room_for(destination, waiting))
        stages.expect(_stages_left(parts, len(settings)))

        children = Children(waiting, stages, tell_making)
        work = _Work(origin, target, folder, stages, children, child_from, _identity(located, target))
        made = {part.name: work.make(part) for part in parts}
        components = {name: each.component for name, each in made.items()}
        differences = {name: each.difference for name, each in made.items() if each.difference is not None}

        stages.begin("plans and inputs")
        planner = _planner(model, recipe, table, components, folder)
        planned = {task: planner.plan(task, chosen) for task, chosen in sorted(settings.items())}
        written = {task: planner.write(chosen) for task, chosen in planned.items()}
        checked = work.check_images(model, components, differences, planned, written)

        stages.begin("manifest")
        bundle = _manifest(origin, target, located.source, model, components, written, checked, folder)
        (folder / MANIFEST).write_bytes(codec.encode_pretty(bundle))
    stages.finish()
    return bundle


def identity_of(spec: ModelSpec, weights: str) -> tuple[Source, str]:
    """Return what identifies a model's weights and its settings, downloading what is missing.

    Settings that the registry knows have none but the product's version. Raises what `export` raises for a source.
    """
    if not weights:
        located = sources.locate(spec, family_of(spec.family).SUBFOLDERS)
        return located.source, sources.settings_sha256(located.folder)
    folder = sources.own_settings(spec)
    settings = "" if folder is None else sources.settings_sha256(folder)
    return sources.source_without_weights(spec, weights), settings


def _located(spec: ModelSpec, family: Family, weights: str, settings: Path) -> Located:
    if not weights:
        return sources.locate(spec, family.SUBFOLDERS)
    templates = getattr(family, "templates", tuple)  # a family whose prompts stand alone has none
    return sources.locate_without_weights(spec, templates(), weights, settings)


def _open(origin: Origin, settings: Mapping[Task, TaskDefaults]) -> Model:
    """Take the model apart, and refuse what it cannot do before anything is made."""
    with quiet():
        model = open_origin(origin).model
    for task in settings:
        if task not in model.tasks:
            raise InputError(f"{origin.spec.name} cannot {task}; its pipeline can {' and '.join(model.tasks)}")
        model.condition(task, settings[task])
    text_encoder.check_scheme(model.title, list(model.parts.values()), origin.recipe)
    return model


def _schedule(model: Model, settings: Mapping[Task, TaskDefaults]) -> tuple[ScheduleTable, Part]:
    table = schedules.tabulate(model.scheduler, model.schedulers, [chosen.steps for chosen in settings.values()])
    return table, guide_step(table, model.latents, model.most_branches)


def _stages_left(parts: list[Part], tasks: int) -> int:
    """Count the schedules and what follows: components, inputs, one check per task, manifest."""
    return 1 + sum(stages_of(part) for part in parts) + 1 + tasks + 1


def _identity(located: Located, target: Runtime) -> str:
    """Stand for weights, settings and toolchain: what was made from others is not taken for a component."""
    settings = settings_sha256(located.folder)
    return repr((located.source.weights_sha256, settings, __version__, sorted(_tools(target).items())))


class _Work(NamedTuple):
    """Where components are made and images compared: small ones here, others in processes of their own."""

    origin: Origin
    target: Runtime
    folder: Path
    stages: Stages
    children: Children
    child_from: int
    identity: str

    def make(self, part: Part) -> MadeComponent:
        """Make a component below the bundle's folder."""
        if part.parameters < self.child_from:
            return make_component(part, self.target, self.folder, self.origin.recipe, self.stages)
        job = ComponentJob(origin=self.origin, identity=self.identity, part=part.name, destination="")
        made, ready = self.children.make(job)
        bring(ready, self.folder)
        return made

    def check_images(
        self,
        model: Model,
        components: dict[str, Component],
        differences: dict[str, Difference],
        planned: Mapping[Task, PlannedTask],
        written: dict[Task, TaskPlan],
    ) -> Verification:
        """Compare whole images where that says something; components were compared as they were made."""
        recipe = self.origin.recipe
        reference, unverified = text_encoder.reference_title(model.title, recipe), self.target.unverified(recipe)
        if unverified is not None:
            return Verification(reference=reference, components={}, images={}, not_run=unverified)
        engine = self.target.engine()
        images, why_not = {}, None
        if any(part.parameters >= self.child_from for part in model.parts.values()):
            if self.origin.weights:
                why_not = _NOT_AT_RANDOM
            else:
                settings = {task: each.settings for task, each in planned.items()}
                job = ImagesJob(
                    origin=self.origin,
                    bundle=str(self.folder),
                    components=components,
                    differences=differences,
                    settings=settings,
                    tasks=written,
                )
                images = self.children.compare_images(job)
        else:
            verifier = Verifier(model, components, self.folder, engine, self.stages)
            images = verifier.verify(planned, recipe, differences)
        return Verification(
            reference=reference,
            components=differences,
            images=images,
            engine=f"{engine.name} {engine.version}",
            not_run=self.target.not_run,
            images_not_run=why_not,
        )


def _planner(
    model: Model, recipe: Recipe, table: ScheduleTable, components: Mapping[str, Component], folder: Path
) -> Planner:
    prompts.write_tokenizer(model.tokenizer, model.prompt_length, folder / TOKENIZER)
    default_inputs.write_constants(model, folder / plans.CONSTANTS_FILE)
    return Planner(
        model=model, recipe=recipe, table=table, components=components, pictures=sources.REGISTRY, folder=folder
    )


def _manifest(
    origin: Origin,
    target: Runtime,
    source: Source,
    model: Model,
    components: dict[str, Component],
    written: dict[Task, TaskPlan],
    verification: Verification,
    folder: Path,
) -> Bundle:
    return Bundle(
        model=origin.spec.name,
        source=source,
        licence=origin.spec.licence,
        recipe=origin.recipe,
        components=components,
        tasks=written,
        prompt_encoding=PromptEncoding(tokenizer=TOKENIZER, length=model.prompt_length, forms=dict(model.prompts)),
        verification=verification,
        files=_files(folder),
        tools=_tools(target),
    )


def _tools(target: Runtime) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in (*_TOOLS, *target.tools)}


def _files(folder: Path) -> tuple[BundleFile, ...]:
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return tuple(describe(folder, path) for path in paths)
