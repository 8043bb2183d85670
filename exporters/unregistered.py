"""A registry entry made up for a pipeline folder or hub id that has none."""

from __future__ import annotations

from pathlib import Path

from exporters.families import Family, family_for, known_pipelines
from exporters.networks import Networks
from exporters.sources import fetch_index, fetch_snapshot
from profiler.errors import InputError
from profiler.records.spec import Licence, ModelSpec


def spec_for(name: str) -> ModelSpec:
    """Describe the pipeline in a folder, or the one with a hub id. Raises InputError or MissingSource."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _spec(folder.absolute(), str(folder.absolute()), folder.absolute().name)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise InputError(
            f"{name!r} is no model's name, no folder here, and no hub id",
            hint="Names: profile models. A hub id looks like owner/name.",
        )
    _, family = _family_in(fetch_index(name))
    return _spec(fetch_snapshot(name, None, family.SUBFOLDERS), name, name.split("/")[1])


def _family_in(folder: Path) -> tuple[str, Family]:
    """Return the family of a folder's pipeline. Raises InputError where none knows it."""
    return family_for(Networks(folder).check_pipeline(*known_pipelines()))


def _spec(folder: Path, repo: str, title: str) -> ModelSpec:
    name, family = _family_in(folder)
    side, tasks = family.defaults_of(folder)
    return ModelSpec(
        name=title,
        title=title,
        family=name,
        repo=repo,
        licence=Licence(name="unknown", commercial_use="unknown", source="not in the registry; see the model's card"),
        height=side,
        width=side,
        tasks=tasks,
    )
