"""The formats that a bundle can be written in, one module each, found by their recipe's name; plug-ins add to them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from exporters.parts import Part
from exporters.progress import Stages
from profiler import plugins
from profiler.errors import InputError, InternalError
from profiler.records.bundle import Component
from profiler.records.recipe import Backend, EncoderScheme, Precision, Recipe
from profiler.runner.engines.engine import Engine

# Recipe's runtime → module here; imported when asked for, since each brings a toolchain.
_MODULES = {
    "onnx": "exporters.runtimes.onnx",
    "executorch": "exporters.runtimes.executorch",
    "coreml": "exporters.runtimes.coreml",
}


def accept(recipe: Recipe) -> None:
    """Take any recipe."""


def runs_here(recipe: Recipe) -> str | None:
    """Say that nothing keeps an engine here from running what a recipe asks for."""
    return None


class Runtime(NamedTuple):
    """One format.

    `export_part` writes a part below a folder and raises ModelError where it cannot; `engine` makes what its files are
    verified with; `tools` are the packages whose versions go into the manifest. `precisions` and `schemes` are those
    of a recipe that it can write; `not_run` says why the engine is not the one that devices have, if it is not; `check`
    raises InputError for what else a recipe may not ask of it. `unverified` says why no engine here runs what a recipe
    asks for, if none does.
    """

    export_part: Callable[[Part, Path, Recipe, Stages], Component]
    engine: Callable[[], Engine]
    tools: tuple[str, ...]
    precisions: tuple[Precision, ...] = ("fp32",)
    schemes: tuple[EncoderScheme, ...] = ("fp32",)
    not_run: str | None = None
    check: Callable[[Recipe], None] = accept
    backends: tuple[Backend, ...] = ("xnnpack",)
    unverified: Callable[[Recipe], str | None] = runs_here


def runtime(name: str) -> Runtime:
    """Return a format by its recipe's name. Raises UnknownName, MissingExtra without its toolchain, or InputError for
    a plug-in that is broken."""
    plugin = plugins.find(plugins.RUNTIMES, name, _MODULES)
    found = import_module(_MODULES[name]).RUNTIME if plugin is None else plugins.load(plugin)
    if not isinstance(found, Runtime):
        what = "is no exporters.runtimes.Runtime"
        raise InternalError(f"{name}: {what}") if plugin is None else plugins.broken(plugin, what)
    return found


def check_expresses(recipe: Recipe, target: Runtime) -> None:
    """Raise InputError where a format has no form for what a recipe asks for, or a device no unit that runs it."""
    for what, wanted, known in (
        ("precision", recipe.precision, target.precisions),
        ("text-encoder scheme", recipe.text_encoder, target.schemes),
    ):
        if wanted not in known:
            raise InputError(f"{recipe.runtime} bundles have no {what} {wanted}", hint=f"There are {', '.join(known)}.")
    if recipe.backend not in target.backends:
        raise InputError(
            f"{recipe.runtime} bundles have no backend {recipe.backend}", hint="Backends are for --runtime executorch."
        )
    target.check(recipe)
