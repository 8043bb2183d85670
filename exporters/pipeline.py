"""The export itself: model and recipe in, verified bundle out."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from msgspec.structs import replace

from exporters import default_inputs, plans, prompts, schedules, sources, text_encoder
from exporters.families import stable_diffusion
from exporters.guide_step import guide_step
from exporters.parts import Model, Part
from exporters.progress import Progress, Stages, silent
from exporters.runtimes import check_expresses, runtime
from exporters.tasks import TOKENIZER, Planner
from exporters.verify import Verifier
from profiler import codec
from profiler.bundle_files import MANIFEST, describe, written_whole
from profiler.errors import InputError, UnknownName
from profiler.records.bundle import Bundle, BundleFile, PromptEncoding
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import ModelSpec, TaskDefaults

FAMILIES = {stable_diffusion.NAME: stable_diffusion}
_TOOLS = ("torch", "diffusers", "transformers", "tokenizers")


def export(
    spec: ModelSpec,
    recipe: Recipe,
    destination: Path,
    *,
    tasks: Mapping[Task, TaskDefaults] | None = None,
    progress: Progress = silent,
) -> Bundle:
    """Export a model as a verified bundle in a new folder; on any error nothing is left there.

    `tasks` replaces the spec's tasks and their settings. Raises InputError (and MissingSource) for what cannot be
    loaded or expressed, ModelError for what torch cannot export, BeyondTolerance for what came out different.
    """
    settings = dict(tasks or spec.tasks)
    family, target = _family(spec.family), runtime(recipe.runtime)
    check_expresses(recipe, target)
    stages = Stages(progress)
    with written_whole(destination) as folder:
        stages.begin("load")
        located = sources.locate(spec, family.SUBFOLDERS)
        model: Model = family.load(located.folder, recipe)
        _check_tasks(spec, model, settings)
        quantized = text_encoder.quantize(model, recipe)
        model = text_encoder.reference_title(model, recipe)

        stages.begin("schedules")
        table = schedules.tabulate(model.scheduler, [chosen.steps for chosen in settings.values()])
        parts = [*model.parts.values(), guide_step(table, model.latents, plans.most_branches(model))]
        stages.expect(_stages_left(parts, len(settings)))

        components = {part.name: target.export_part(part, folder, recipe, stages) for part in parts}

        stages.begin("plans and inputs")
        prompts.write_tokenizer(model.tokenizer, model.prompt_length, folder / TOKENIZER)
        default_inputs.write_source_constants(model, folder / plans.CONSTANTS_FILE)
        planner = Planner(
            model=model, recipe=recipe, table=table, components=components, pictures=sources.REGISTRY, folder=folder
        )
        planned = {task: planner.plan(task, chosen) for task, chosen in sorted(settings.items())}

        engine = target.engine()
        verified = Verifier(model, components, folder, engine, stages).verify(parts, planned, recipe)

        stages.begin("manifest")
        written = {task: planner.write(chosen) for task, chosen in planned.items()}
        files = _files(folder)
        bundle = Bundle(
            model=spec.name,
            source=located.source,
            licence=spec.licence,
            recipe=recipe,
            components=text_encoder.described(components, quantized, files),
            tasks=written,
            prompt_encoding=PromptEncoding(tokenizer=TOKENIZER, length=model.prompt_length),
            verification=replace(verified, engine=f"{engine.name} {engine.version}", not_run=target.not_run),
            files=files,
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
    """Count the schedules and what follows: graphs, inputs, one check per component and task, manifest."""
    return 1 + sum(len(part.graphs) for part in parts) + 1 + len(parts) + tasks + 1


def _files(folder: Path) -> tuple[BundleFile, ...]:
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return tuple(describe(folder, path) for path in paths)
