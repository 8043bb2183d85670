"""The architectures that can be exported, one module each; plug-ins add to them."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from exporters.networks import Networks
from exporters.parts import Model
from exporters.sources import Subfolders
from profiler import plugins
from profiler.records.recipe import Recipe

_MODULES = {
    "dreamlite": "exporters.families.dreamlite",
    "sana_sprint": "exporters.families.sana_sprint",
    "stable_diffusion": "exporters.families.stable_diffusion",
}


class Family(Protocol):
    """What a family's module has: the subfolders that it reads, and how it takes a pipeline apart."""

    SUBFOLDERS: Subfolders

    def load(self, networks: Networks, recipe: Recipe) -> Model:
        """Take a pipeline apart. Raises InputError where it cannot be expressed."""


def family_of(name: str) -> Family:
    """Return a family by the name that registry entries use. Raises UnknownName, or InputError for a plug-in that is
    broken."""
    plugin = plugins.find(plugins.FAMILIES, name, _MODULES)
    found: Any = import_module(_MODULES[name]) if plugin is None else plugins.load(plugin)
    if plugin is not None and not _is_family(found):
        raise plugins.broken(plugin, "is no family: it lacks `load` or `SUBFOLDERS` (exporters.sources.Subfolders)")
    family: Family = found
    return family


def _is_family(found: Any) -> bool:
    return callable(getattr(found, "load", None)) and isinstance(getattr(found, "SUBFOLDERS", None), Subfolders)
