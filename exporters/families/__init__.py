"""The architectures that can be exported, one module each."""

from __future__ import annotations

from importlib import import_module
from typing import Protocol

from exporters.networks import Networks
from exporters.parts import Model
from exporters.sources import Subfolders
from profiler.errors import UnknownName
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
    """Return a family by the name that registry entries use. Raises UnknownName."""
    if name not in _MODULES:
        raise UnknownName("model family", name, _MODULES)
    found: Family = import_module(_MODULES[name])
    return found
