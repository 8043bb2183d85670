"""The one seam to the exporters: imported only when a bundle has to be made, and named when it is missing."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from profiler import __version__, catalog
from profiler.bundle_files import MANIFEST, load_manifest
from profiler.errors import InputError, MissingExtra, UnknownName
from profiler.records.recipe import LoadPolicy, Runtime, recipe_of
from profiler.records.spec import ModelSpec

EXTRA_PACKAGES = ("torch", "diffusers", "transformers", "onnx", "onnxscript")
_RUNTIME: Runtime = "onnx"
# What a runtime needs beyond; the extra has the runtime's name.
_TOOLCHAINS: dict[Runtime, tuple[str, ...]] = {"executorch": ("executorch", "torchao"), "coreml": ("coremltools",)}

# Stage name, stages done, stages in all.
Progress = Callable[[str, int, int], None]


def ready_bundle(model: str, runtime: Runtime | None = None) -> Path | None:
    """Return a bundle that is there without exporting: a folder that is one, or one shipped with the product.

    `runtime` is the one asked for, if any; a shipped bundle of another is passed over. Raises InputError for a folder
    of another.
    """
    folder = _folder(model)
    if folder is not None and (folder / MANIFEST).is_file():
        _check_runtime(folder, runtime)
        return folder.absolute()
    spec = catalog.models().get(model)
    shipped = catalog.shipped_bundle(spec) if spec else None
    return shipped if shipped and runtime in (None, load_manifest(shipped).recipe.runtime) else None


def is_ready(model: str, runtime: Runtime | None = None) -> bool:
    """Tell whether a model can be measured without exporting it. Raises UnknownName, InputError or MissingExtra."""
    if ready_bundle(model, runtime) is not None:
        return True
    _check_can_export(model, runtime or _RUNTIME)
    return False


def bundle_for(model: str, progress: Progress, runtime: Runtime | None = None) -> Path:
    """Return a bundle to measure, exporting it into the cache where need be. Raises what `export` raises."""
    return ready_bundle(model, runtime) or export(model, None, "resident", progress, runtime=runtime)[0]


def export(
    model: str, out: Path | None, load_policy: LoadPolicy, progress: Progress, *, runtime: Runtime | None = None
) -> tuple[Path, bool]:
    """Export a model, or find its bundle in the cache; return the folder and whether it was made now.

    Raises UnknownName, MissingExtra, MissingSource, InputError, ModelError or BeyondTolerance.
    """
    runtime = runtime or _RUNTIME
    _check_can_export(model, runtime)
    from exporters.quiet import quiet

    with quiet():  # packages that are installed beside ours complain of each other when they are imported
        from exporters import pipeline, sources

    spec = _spec(model)
    recipe = recipe_of(spec.height, spec.width, runtime=runtime, load_policy=load_policy)
    if out is not None:
        pipeline.export(spec, recipe, out, progress=progress)
        return out, True
    located = sources.locate(spec, pipeline.subfolders(spec))
    cached = catalog.cached_bundle(spec.name, spec, recipe, located.source, _tools(runtime))
    if (cached / MANIFEST).is_file():
        return cached, False
    pipeline.export(spec, recipe, cached, progress=progress)
    return cached, True


def missing_packages() -> list[str]:
    """Return the packages of the export extra that are not installed."""
    return [name for name in EXTRA_PACKAGES if find_spec(name) is None]


def _check_runtime(folder: Path, runtime: Runtime | None) -> None:
    found = load_manifest(folder).recipe.runtime
    if runtime not in (None, found):
        raise InputError(f"{folder} is a bundle for {found}, not for {runtime}", hint="Export its model again.")


def _check_can_export(model: str, runtime: Runtime) -> None:
    """Refuse a plain word that is no model, before asking for packages or the network."""
    if model not in catalog.models() and "/" not in model and _folder(model) is None:
        hint = "All: profile models. A folder or a hub id (owner/name) works too."
        raise UnknownName("model", model, catalog.models(), hint=hint)
    if missing_packages():
        raise MissingExtra(f"exporting {model}", "export")
    if any(find_spec(name) is None for name in _TOOLCHAINS.get(runtime, ())):
        raise MissingExtra(f"exporting {model} for {runtime}", runtime)


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
