"""The one seam to the exporters: imported only when a bundle has to be made, and named when it is missing."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from profiler import __version__, catalog
from profiler.bundle_files import MANIFEST
from profiler.errors import MissingExtra, UnknownName
from profiler.records.recipe import LoadPolicy, Recipe
from profiler.records.spec import ModelSpec

EXTRA_PACKAGES = ("torch", "diffusers", "transformers", "onnx", "onnxscript")

# Stage name, stages done, stages in all.
Progress = Callable[[str, int, int], None]


def ready_bundle(model: str) -> Path | None:
    """Return a bundle that is there without exporting: a folder that is one, or one shipped with the product."""
    folder = _folder(model)
    if folder is not None and (folder / MANIFEST).is_file():
        return folder.absolute()
    spec = catalog.models().get(model)
    return catalog.shipped_bundle(spec) if spec else None


def is_ready(model: str) -> bool:
    """Tell whether a model can be measured without exporting it. Raises UnknownName or MissingExtra."""
    if ready_bundle(model) is not None:
        return True
    _check_can_export(model)
    return False


def bundle_for(model: str, progress: Progress) -> Path:
    """Return a bundle to measure, exporting it into the cache where need be. Raises what `export` raises."""
    return ready_bundle(model) or export(model, None, "resident", progress)[0]


def export(model: str, out: Path | None, load_policy: LoadPolicy, progress: Progress) -> tuple[Path, bool]:
    """Export a model, or find its bundle in the cache; return the folder and whether it was made now.

    Raises UnknownName, MissingExtra, MissingSource, InputError, ModelError or BeyondTolerance.
    """
    _check_can_export(model)
    from exporters import pipeline, sources

    spec = _spec(model)
    recipe = Recipe(height=spec.height, width=spec.width, load_policy=load_policy)
    if out is not None:
        pipeline.export(spec, recipe, out, progress=progress)
        return out, True
    located = sources.locate(spec, pipeline.subfolders(spec))
    cached = catalog.cached_bundle(spec.name, spec, recipe, located.source, _tools())
    if (cached / MANIFEST).is_file():
        return cached, False
    pipeline.export(spec, recipe, cached, progress=progress)
    return cached, True


def missing_packages() -> list[str]:
    """Return the packages of the export extra that are not installed."""
    return [name for name in EXTRA_PACKAGES if find_spec(name) is None]


def _check_can_export(model: str) -> None:
    """Refuse a plain word that is no model, before asking for packages or the network."""
    if model not in catalog.models() and "/" not in model and _folder(model) is None:
        hint = "All: profile models. A folder or a hub id (owner/name) works too."
        raise UnknownName("model", model, catalog.models(), hint=hint)
    if missing_packages():
        raise MissingExtra(f"exporting {model}", "export")


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


def _tools() -> dict[str, str]:
    return {"profiler": __version__, **{name: version(name) for name in EXTRA_PACKAGES}}
