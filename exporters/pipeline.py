"""The export itself: model and recipe in, verified bundle out."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from exporters import default_inputs, plans, prompts, schedules, sources, text_encoder
from exporters.component import make_component, stages_of
from exporters.families import stable_diffusion
from exporters.guide_step import guide_step
from exporters.networks import Networks
from exporters.parts import Model, Part
from exporters.progress import Progress, Stages, silent
from exporters.runtimes import check_expresses, runtime
from exporters.tasks import TOKENIZER, Planner
from exporters.verify import Verifier
from exporters.weights import weights_of
from profiler import codec
from profiler.bundle_files import MANIFEST, describe, written_whole
from profiler.errors import InputError, UnknownName
from profiler.records.bundle import Bundle, BundleFile, PromptEncoding, Verification
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import ModelSpec, TaskDefaults

FAMILIES = {stable_diffusion.NAME: stable_diffusion}
_TOOLS = ("torch", "diffusers", "transformers", "tokenizers")
_RANDOM = "random weights: an image of them says nothing that the components do not"


def export(
    spec: ModelSpec,
    recipe: Recipe,
    destination: Path,
    *,
    tasks: Mapping[Task, TaskDefaults] | None = None,
    weights: str = "",
    progress: Progress = silent,
) -> Bundle:
    """Export a model as a verified bundle in a new folder; on any error nothing is left there.

    `tasks` replaces the spec's tasks and their settings; `weights` may be `random:SEED`. Raises InputError (and
    MissingSource) for what cannot be loaded or expressed, ModelError for what torch cannot export, BeyondTolerance for
    what came out different.
    """
    settings = dict(tasks or spec.tasks)
    family, target = _family(spec.family), runtime(recipe.runtime)
    check_expresses(recipe, target)
    stages = Stages(progress)
    with written_whole(destination) as folder:
        stages.begin("load")
        located = sources.locate(spec, family.SUBFOLDERS, weights)
        model: Model = family.load(Networks(located.folder, weights_of(weights)), recipe)
        _check_tasks(spec, model, settings)
        text_encoder.check_scheme(model.title, list(model.parts.values()), recipe)

        stages.begin("schedules")
        table = schedules.tabulate(model.scheduler, model.schedulers, [chosen.steps for chosen in settings.values()])
        parts = [*model.parts.values(), guide_step(table, model.latents, model.most_branches)]
        stages.expect(_stages_left(parts, len(settings)))

        made = {part.name: make_component(part, target, folder, recipe, stages) for part in parts}
        components = {name: each.component for name, each in made.items()}
        differences = {name: each.difference for name, each in made.items() if each.difference is not None}

        stages.begin("plans and inputs")
        prompts.write_tokenizer(model.tokenizer, model.prompt_length, folder / TOKENIZER)
        default_inputs.write_constants(model, folder / plans.CONSTANTS_FILE)
        planner = Planner(
            model=model, recipe=recipe, table=table, components=components, pictures=sources.REGISTRY, folder=folder
        )
        planned = {task: planner.plan(task, chosen) for task, chosen in sorted(settings.items())}

        engine = target.engine()
        images = Verifier(model, components, folder, engine, stages).verify(planned, recipe, differences)

        stages.begin("manifest")
        written = {task: planner.write(chosen) for task, chosen in planned.items()}
        bundle = Bundle(
            model=spec.name,
            source=located.source,
            licence=spec.licence,
            recipe=recipe,
            components=components,
            tasks=written,
            prompt_encoding=PromptEncoding(tokenizer=TOKENIZER, length=model.prompt_length, forms=dict(model.prompts)),
            verification=Verification(
                reference=text_encoder.reference_title(model.title, recipe),
                components=differences,
                images=images,
                engine=f"{engine.name} {engine.version}",
                not_run=target.not_run,
            ),
            files=_files(folder),
            tools={name: importlib.metadata.version(name) for name in (*_TOOLS, *target.tools)},
        )
        (folder / MANIFEST).write_bytes(codec.encode_pretty(bundle))
    stages.finish()
    return bundle


def subfolders(spec: ModelSpec) -> sources.Subfolders:
    """Return the parts of a source folder that the spec's family reads."""
    found: sources.Subfolders = _family(spec.family).SUBFOLDERS
    return found


def _family(name: str) -> ModuleType:
    if name not in FAMILIES:
        raise UnknownName("model family", name, FAMILIES)
    return FAMILIES[name]


def _check_tasks(spec: ModelSpec, model: Model, settings: Mapping[Task, TaskDefaults]) -> None:
    for task in settings:
        if task not in model.tasks:
            raise InputError(f"{spec.name} cannot {task}; its pipeline can {' and '.join(model.tasks)}")


def _stages_left(parts: list[Part], tasks: int) -> int:
    """Count the schedules and what follows: components, inputs, one check per task, manifest."""
    return 1 + sum(stages_of(part) for part in parts) + 1 + tasks + 1


def _files(folder: Path) -> tuple[BundleFile, ...]:
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return tuple(describe(folder, path) for path in paths)
