"""The one seam to the exporters: imported only when a bundle has to be made, and named when it is missing."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from profiler import __version__, catalog
from profiler.bundle_files import MANIFEST, load_manifest
from profiler.errors import InputError, MissingExtra, UnknownName
from profiler.records.recipe import Backend, EncoderScheme, LoadPolicy, Precision, Recipe, Runtime, recipe_of
from profiler.records.spec import ModelSpec

EXTRA_PACKAGES = ("torch", "diffusers", "transformers", "onnx", "onnxscript")
_RUNTIME: Runtime = "onnx"
# What a runtime needs beyond; the extra has the runtime's name.
_TOOLCHAINS: dict[Runtime, tuple[str, ...]] = {"executorch": ("executorch", "torchao"), "coreml": ("coremltools",)}

# Stage name, stages done, stages in all.
Progress = Callable[[str, int, int], None]


class Wanted(NamedTuple):
    """How a bundle is to be made, as far as somebody said."""

    runtime: Runtime | None = None
    precision: Precision | None = None
    text_encoder: EncoderScheme | None = None
    kept: tuple[str, ...] = ()
    load_policy: LoadPolicy | None = None
    backend: Backend | None = None

    def recipe(self, spec: ModelSpec) -> Recipe:
        """Return the whole recipe for a model."""
        said = {name: value for name, value in self._asdict().items() if value}
        return recipe_of(spec.height, spec.width, **said)

    def differs_from(self, recipe: Recipe) -> str | None:
        """Name the first thing that was said and that a recipe does not have."""
        for name, value in self._asdict().items():
            if value and getattr(recipe, name) != value:
                return f"{name.replace('_', ' ')} {value if isinstance(value, str) else ', '.join(value)}"
        return None


ANY = Wanted()


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
    return shipped if load_manifest(shipped).recipe == wanted.recipe(spec) else None


def is_ready(model: str, wanted: Wanted = ANY) -> bool:
    """Tell whether a model can be measured without exporting it. Raises UnknownName, InputError or MissingExtra."""
    if ready_bundle(model, wanted) is not None:
        return True
    _check_can_export(model, wanted.runtime or _RUNTIME)
    return False


def bundle_for(model: str, progress: Progress, wanted: Wanted = ANY) -> Path:
    """Return a bundle to measure, exporting it into the cache where need be. Raises what `export` raises."""
    return ready_bundle(model, wanted) or export(model, None, wanted, progress)[0]


def export(model: str, out: Path | None, wanted: Wanted, progress: Progress) -> tuple[Path, bool]:
    """Export a model, or find its bundle in the cache; return the folder and whether it was made now.

    Raises UnknownName, MissingExtra, MissingSource, InputError, ModelError or BeyondTolerance.
    """
    _check_can_export(model, wanted.runtime or _RUNTIME)
    from exporters.quiet import quiet

    with quiet():  # packages that are installed beside ours complain of each other when they are imported
        from exporters import pipeline, sources

    spec = _spec(model)
    recipe = wanted.recipe(spec)
    if out is not None:
        pipeline.export(spec, recipe, out, progress=progress)
        return out, True
    located = sources.locate(spec, pipeline.subfolders(spec))
    cached = catalog.cached_bundle(spec.name, spec, recipe, located.source, _tools(recipe.runtime))
    if (cached / MANIFEST).is_file():
        return cached, False
    pipeline.export(spec, recipe, cached, progress=progress)
    return cached, True


def missing_packages() -> list[str]:
    """Return the packages of the export extra that are not installed."""
    return [name for name in EXTRA_PACKAGES if find_spec(name) is None]


def _check_made_as(folder: Path, wanted: Wanted) -> None:
    if wanted == ANY:
        return
    difference = wanted.differs_from(load_manifest(folder).recipe)
    if difference:
        raise InputError(
            f"{folder} was not made with {difference}",
            hint="A bundle is measured as it is; name the model to have it exported in another way.",
        )


def _check_can_export(model: str, runtime: Runtime) -> None:
    """Refuse a plain word that is no model, before asking for packages or the network."""
    if model not in catalog.models() and "/" not in model and _folder(model) is None:
        hint = "All: profile models. A folder or a hub id (owner/name) works too."
        raise UnknownName("model", model, catalog.models(), hint=hint)
    if _is_a_path_to_nothing(model):
        raise InputError(
            f"{model!r} is no folder here", hint="Name a bundle's or a pipeline's folder, a hub id, or: profile models"
        )
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
    from exporters.unregistered import spec_for

    return spec_for(model)


def _tools(runtime: Runtime) -> dict[str, str]:
    names = (*EXTRA_PACKAGES, *_TOOLCHAINS.get(runtime, ()))
    return {"profiler": __version__, **{name: version(name) for name in names}}
