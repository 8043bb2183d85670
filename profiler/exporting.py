"""The one seam to the exporters: imported only when a bundle has to be made, and named when it is missing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from profiler import __version__, catalog, codec, plugins
from profiler.bundle_files import MANIFEST, load_manifest
from profiler.errors import InputError, MissingExtra, MissingSource, UnknownName
from profiler.records.bundle import Bundle
from profiler.records.recipe import (
    BUILT_IN_RUNTIMES,
    Backend,
    EncoderScheme,
    LoadPolicy,
    Precision,
    Recipe,
    Runtime,
    recipe_of,
)
from profiler.records.spec import DefaultRecipe, ModelSpec

EXTRA_PACKAGES = ("torch", "diffusers", "transformers", "accelerate", "onnx", "onnxscript", "coremltools")
_RUNTIME: Runtime = "onnx"
# What a runtime needs beyond; the extra has the runtime's name.
_TOOLCHAINS: dict[Runtime, tuple[str, ...]] = {"executorch": ("executorch", "torchao")}

# What wrapping a foreign graph needs by its ending, and the extra that has it.
_GRAPH_PACKAGES = {
    ".onnx": (("onnx", "tqdm"), "export"),
    ".pte": (("executorch", "torch"), "executorch"),
    ".mlpackage": (("coremltools", "torch"), "export"),
}
_MAKE_ONE = "Make one: profile export --help"

# Stage name, stages done, stages in all.
Progress = Callable[[str, int, int], None]


class Wanted(NamedTuple):
    """How a bundle is to be made, as far as somebody said."""

    runtime: Runtime | None = None
    precision: Precision | None = None
    text_encoder: EncoderScheme | None = None
    kept: tuple[str, ...] = ()
    load_policy: LoadPolicy | None = None
    weights: str | None = None
    backend: Backend | None = None

    def recipe(self, spec: ModelSpec) -> Recipe:
        """Return the whole recipe for a model: its default for the runtime, changed where something was said."""
        said = {name: value for name, value in self._asdict().items() if value and name != "weights"}
        usual = spec.recipes.get(self.runtime or _RUNTIME)
        if usual is not None and self.precision in (None, usual.precision):
            said = {"precision": usual.precision, "text_encoder": usual.text_encoder, **said}
        return recipe_of(spec.height, spec.width, **said)

    def default_of(self, spec: ModelSpec) -> DefaultRecipe | None:
        """Return a model's default recipe for the runtime, where what is wanted is that."""
        usual = spec.recipes.get(self.runtime or _RUNTIME)
        asked = self.recipe(spec)
        made = usual is not None and (usual.precision, usual.text_encoder) == (asked.precision, asked.text_encoder)
        return usual if made and not self.kept else None

    def differs_from(self, bundle: Bundle) -> str | None:
        """Name the first thing that was said and that a bundle does not have."""
        for name, value in self._asdict().items():
            has = bundle.source.weights_sha256 if name == "weights" else getattr(bundle.recipe, name)
            if value and has != value:
                return f"{name.replace('_', ' ')} {value if isinstance(value, str) else ', '.join(value)}"
        return None


ANY = Wanted()


class Graph(NamedTuple):
    """What was said of a foreign graph; see exporters/foreign/wrapping.py for what None means."""

    inputs: Path | None = None
    seed: int = 0
    name: str | None = None
    licence: str | None = None
    output: str | None = None
    values: tuple[float, float] | None = None
    shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})


def ready_bundle(model: str, wanted: Wanted = ANY) -> Path | None:
    """Return a bundle that is there without exporting: a folder that is one, or one shipped with the product.

    A shipped one counts only if its recipe is the wanted one. Raises InputError for a folder made by another.
    """
    folder = _folder(model)
    if folder is not None and (folder / MANIFEST).is_file():
        _check_made_as(folder, wanted)
        return folder.absolute()
    spec = catalog.models().get(model)
    shipped = catalog.shipped_bundle(spec) if spec else None
    if spec is None or shipped is None or wanted == ANY:
        return shipped
    made = load_manifest(shipped)
    return shipped if made.recipe == wanted.recipe(spec) and wanted.differs_from(made) is None else None


def bundle_at(folder: Path, wanted: Wanted = ANY) -> Path:
    """Return the folder of a bundle, named as one. Raises MissingSource or InputError for one that is none."""
    path = _folder(str(folder))
    if path is None:
        what = "is a file" if os.path.isfile(folder) else "is not there"
        raise MissingSource(f"{folder} {what}; a bundle is a folder that holds {MANIFEST}", hint=_MAKE_ONE)
    if not (path / MANIFEST).is_file() and (path / "model_index.json").is_file():
        raise MissingSource(f"{folder} holds a diffusers pipeline, no bundle", hint=f"Export it: --model {folder}")
    load_manifest(path)
    _check_made_as(path, wanted)
    return path.absolute()


def is_ready(model: str, wanted: Wanted = ANY) -> bool:
    """Tell whether a model can be measured without exporting it. Raises UnknownName, InputError or MissingExtra."""
    if ready_bundle(model, wanted) is not None:
        return True
    _check_can_export(model, wanted.runtime or _RUNTIME)
    return False


def hear(spec: ModelSpec) -> None:
    """Take in what a model is."""


def bundle_for(
    model: str, progress: Progress, wanted: Wanted = ANY, tell_spec: Callable[[ModelSpec], None] = hear
) -> Path:
    """Return a bundle to measure, exporting it into the cache where need be. Raises what `export` raises."""
    return ready_bundle(model, wanted) or export(model, None, wanted, progress, tell_spec).folder


class Exported(NamedTuple):
    """A bundle's folder, and whether it was made now; `usual` is the model's default recipe where that was taken."""

    folder: Path
    made: bool
    usual: DefaultRecipe | None


def export(
    model: str, out: Path | None, wanted: Wanted, progress: Progress, tell_spec: Callable[[ModelSpec], None] = hear
) -> Exported:
    """Export a model, or find its bundle in the cache; `tell_spec` hears what it is before anything is fetched.

    Raises UnknownName, MissingExtra, MissingSource, InputError, ModelError or BeyondTolerance.
    """
    _check_can_export(model, wanted.runtime or _RUNTIME)
    weights = _checked_weights(wanted.weights)
    from exporters.quiet import quiet

    with quiet():  # packages that are installed beside ours complain of each other when they are imported
        from exporters import pipeline

    spec = _spec(model)
    tell_spec(spec)
    recipe, usual = wanted.recipe(spec), wanted.default_of(spec)
    if out is not None:
        pipeline.export(spec, recipe, out, weights=weights, progress=progress)
        return Exported(out, True, usual)
    identity, tools = pipeline.identity_of(spec, weights), _tools(spec, recipe.runtime)
    cached = catalog.cached_bundle(spec.name, _what_counts(spec), recipe, identity, tools)
    if not (cached / MANIFEST).is_file():
        pipeline.export(spec, recipe, cached, weights=weights, progress=progress)
        return Exported(cached, True, usual)
    return Exported(cached, False, usual)


def _checked_weights(weights: str | None) -> str:
    """Return which weights to take; nothing for the model's own. Raises InputError for anything else but a seed."""
    if weights is not None and not re.fullmatch(r"random:[0-9]{1,18}", weights):
        raise InputError(
            f"unknown weights {weights!r}",
            hint="Weights are the model's own, or random:SEED, as random:0; a seed has at most 18 digits.",
        )
    return weights or ""


def _what_counts(spec: ModelSpec) -> ModelSpec:
    """Return a registry entry without what is for readers only."""
    return msgspec.structs.replace(spec, title="", notes="", configs_note="", recipes={})


def wrap(file: Path, graph: Graph, out: Path, progress: Progress) -> Path:
    """Write a foreign graph as a bundle. Raises MissingExtra, InputError or ModelError."""
    packages, extra = _GRAPH_PACKAGES.get(file.suffix, ((), ""))
    if any(find_spec(name) is None for name in packages):
        raise MissingExtra(f"wrapping {file.name}", extra)
    from exporters.quiet import quiet

    with quiet():
        from exporters.foreign import wrapping

        wrapping.check_format(file)
    try:
        wrapping.wrap(file, wrapping.Wishes(**graph._asdict()), out, progress=progress)
    except OSError as error:
        raise InputError(
            f"{out} cannot be written: {error.strerror or error}", hint="Name another: --out DIR"
        ) from error
    return out


def missing_packages() -> list[str]:
    """Return the packages of the export extra that are not installed."""
    return [name for name in EXTRA_PACKAGES if find_spec(name) is None]


def _check_made_as(folder: Path, wanted: Wanted) -> None:
    if wanted == ANY:
        return
    difference = wanted.differs_from(load_manifest(folder))
    if difference:
        raise InputError(
            f"{folder} was not made with {difference}",
            hint="A bundle is measured as it is; name the model to have it exported in another way.",
        )


def _check_can_export(model: str, runtime: Runtime) -> None:
    """Refuse a plain word that is no model, before asking for packages or the network."""
    if model not in catalog.models() and "/" not in model and _folder(model) is None and _entry(model) is None:
        hint = "All: profile models. A folder, a hub id (owner/name) or an entry of your own (a .toml) works too."
        raise UnknownName("model", model, catalog.models(), hint=hint)
    if _entry(model) is None and _is_a_path_to_nothing(model):
        raise InputError(
            f"{model!r} is no folder here", hint="Name a bundle's or a pipeline's folder, a hub id, or: profile models"
        )
    plugins.find(plugins.RUNTIMES, runtime, BUILT_IN_RUNTIMES)
    if missing_packages():
        raise MissingExtra(f"exporting {model}", "export")
    if any(find_spec(name) is None for name in _TOOLCHAINS.get(runtime, ())):
        raise MissingExtra(f"exporting {model} for {runtime}", runtime)


def _is_a_path_to_nothing(model: str) -> bool:
    """Tell whether a name can only be a folder's, and there is none: a hub id has one slash and starts with neither."""
    return _folder(model) is None and (model.startswith((".", "/", "~")) or model.count("/") > 1)


def _folder(model: str) -> Path | None:
    """Return the folder that was typed, if it is one."""
    try:
        folder = Path(model).expanduser()
        return folder if model and folder.is_dir() else None
    except (OSError, RuntimeError):  # a name longer than a file's may be; the home of a user who is not there
        return None


def _spec(model: str) -> ModelSpec:
    registered = catalog.models().get(model)
    if registered is not None:
        return registered
    entry = _entry(model)
    if entry is not None:
        return _read_entry(entry)
    from exporters.unregistered import spec_for

    return spec_for(model)


def _entry(model: str) -> Path | None:
    """Return the registry entry that was typed as a file of one's own, if it is one."""
    return Path(model).expanduser() if model.endswith(".toml") and os.path.isfile(os.path.expanduser(model)) else None


def _read_entry(path: Path) -> ModelSpec:
    """Read a registry entry; a folder that it names relative to itself is found from there."""
    spec = codec.read_toml(path, ModelSpec)
    return replace(spec, repo=str((path.parent / spec.repo).absolute()), embedded=False) if spec.embedded else spec


def _tools(spec: ModelSpec, runtime: Runtime) -> dict[str, str]:
    names = (*EXTRA_PACKAGES, *_TOOLCHAINS.get(runtime, ()))
    added = {
        **plugins.version_of(plugins.FAMILIES, spec.family),
        **plugins.version_of(plugins.RUNTIMES, runtime),
    }
    return {"profiler": __version__, **{name: version(name) for name in names}, **added}
