"""The architectures that can be exported, one module each; plug-ins add to them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from exporters.networks import Networks
from exporters.parts import Model
from exporters.quiet import quiet
from exporters.sources import Subfolders
from profiler import plugins
from profiler.records.recipe import Recipe
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults

_MODULES = {
    "dreamlite": "exporters.families.dreamlite",
    "sana_sprint": "exporters.families.sana_sprint",
    "stable_diffusion": "exporters.families.stable_diffusion",
}


class Family(Protocol):
    """What a family's module has: the subfolders that it reads, and how it takes a pipeline apart.

    A plug-in's may do without `PIPELINES` and `defaults_of`, which are for pipelines without a registry entry.
    """

    SUBFOLDERS: Subfolders
    PIPELINES: tuple[str, ...]

    def defaults_of(self, folder: Path) -> tuple[int, dict[Task, TaskDefaults]]:
        """Return an unregistered pipeline's image side in pixels, and its tasks with usual settings."""

    def load(self, networks: Networks, recipe: Recipe) -> Model:
        """Take a pipeline apart. Raises InputError where it cannot be expressed."""


def family_of(name: str) -> Family:
    """Return a family by the name that registry entries use. Raises UnknownName, or InputError for a plug-in that is
    broken."""
    plugin = plugins.find(plugins.FAMILIES, name, _MODULES)
    with quiet():  # what a family imports complains of packages that are not installed
        found: Any = import_module(_MODULES[name]) if plugin is None else plugins.load(plugin)
    if plugin is not None and not _is_family(found):
        raise plugins.broken(plugin, "is no family: it lacks `load` or `SUBFOLDERS` (exporters.sources.Subfolders)")
    family: Family = found
    return family


def known_pipelines() -> tuple[str, ...]:
    """Return the pipeline classes that the product's own families take apart."""
    return tuple(pipeline for name in _MODULES for pipeline in family_of(name).PIPELINES)


def family_for(pipeline: str) -> tuple[str, Family]:
    """Return the family, and its name, that takes one of the known pipeline classes apart."""
    name = next(name for name in _MODULES if pipeline in family_of(name).PIPELINES)
    return name, family_of(name)


def _is_family(found: Any) -> bool:
    return callable(getattr(found, "load", None)) and isinstance(getattr(found, "SUBFOLDERS", None), Subfolders)
