"""Which inference runtimes a runner knows and finds, its own and those of plug-ins, without importing any."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

from profiler import plugins
from profiler.errors import InputError, MissingExtra, ProfilerError, UnknownName, first_line
from profiler.records.job import EngineName
from profiler.records.recipe import Backend, Runtime
from profiler.runner.engines.engine import Engine


class Kind(NamedTuple):
    """Where a runtime's engine is, the packages it imports (its own first), the extra they are in, and the only
    system that has it, where there is one."""

    module: str
    cls: str
    packages: tuple[str, ...]
    extra: str | None
    system: str | None = None


KINDS: dict[EngineName, Kind] = {
    "onnxruntime": Kind("onnxruntime_engine", "OnnxRuntimeEngine", ("onnxruntime",), None),
    "executorch": Kind("executorch_engine", "ExecutorchEngine", ("executorch", "torch"), "executorch"),
    "coreml": Kind("coreml_engine", "CoremlEngine", ("coremltools",), "export", system="Darwin"),
}
# Backends that ExecuTorch's Python package cannot run, and where they can be.
_ELSEWHERE: dict[Backend, str] = {
    "coreml": "in apps for Apple devices",
    "vulkan": "in apps for Android, or in a runtime that was built with it",
}
# A plug-in's engine has the name of the runtime that it runs.
_BY_RUNTIME: dict[Runtime, EngineName] = {"onnx": "onnxruntime", "executorch": "executorch"}


def engine_for(runtime: Runtime, backend: Backend | None = None) -> EngineName:
    """Return the engine that runs a recipe's runtime. Raises InputError where this runner has none, or not with that
    backend."""
    if runtime == "executorch" and backend in _ELSEWHERE:
        raise InputError(
            f"ExecuTorch's Python package has no {backend} backend; programs for it run {_ELSEWHERE[backend]}",
            hint="Here such a bundle can be exported, unverified. Measure one for --backend xnnpack.",
        )
    name = _BY_RUNTIME.get(runtime, runtime)
    if name in KINDS or name in plugins.plugins(plugins.ENGINES):
        plugins.find(plugins.ENGINES, name, KINDS)
        if name in KINDS and not _on_this_system(KINDS[name]):
            raise lack_of(name)
        return name
    known = {*_BY_RUNTIME, *plugins.plugins(plugins.ENGINES)}
    raise UnknownName("runtime", runtime, known, hint="No engine here runs its bundles; a plug-in may bring one.")


def installed() -> dict[str, str]:
    """Return the versions of the runtimes that are there; of a plug-in's, that of its package."""
    added = {
        name: number
        for name in plugins.plugins(plugins.ENGINES)
        for number in plugins.version_of(plugins.ENGINES, name).values()
    }
    found = {**added, **{name: _version(kind) for name, kind in KINDS.items()}}
    return {name: number for name, number in found.items() if number is not None}


def open_engine(name: EngineName, *, threads: int | None) -> Engine:
    """Import a runtime and make its engine. Raises MissingExtra, or InputError for a plug-in that is broken."""
    plugin = plugins.find(plugins.ENGINES, name, KINDS)
    if plugin is not None:
        return _open_plugin(plugin, threads)
    kind = KINDS[name]
    if _version(kind) is None:
        raise lack_of(name)
    make: Callable[..., Engine] = getattr(import_module(f"profiler.runner.engines.{kind.module}"), kind.cls)
    return make(threads=threads)


def _open_plugin(plugin: EntryPoint, threads: int | None) -> Engine:
    make = plugins.load(plugin)
    try:
        engine: Engine = make(threads=threads)
    except ProfilerError:
        raise
    except Exception as error:  # the code of others
        raise plugins.broken(plugin, f"cannot be made: {type(error).__name__}: {first_line(error)}") from error
    return engine


def lack_of(name: EngineName) -> InputError:
    """Say that a runner has not the engine that a job needs, and how to get it."""
    if name not in KINDS:
        return InputError(
            f"this runner has no engine {name!r}, which this bundle needs", hint="Install the plug-in that brings it."
        )
    if not _on_this_system(KINDS[name]):
        return InputError(
            f"Core ML runs on Apple devices only; this machine has {platform.system()} on {platform.machine()}, not "
            "macOS",
            hint="Here its bundles can be exported, which verifies them with an interpreter: profile export --help",
        )
    extra = KINDS[name].extra
    what = f"this runner has no {name}; running this bundle"
    if extra is None:
        return InputError(f"{what} needs it", hint=f"Install it with: pip install {name}")
    return MissingExtra(what, extra)


def _on_this_system(kind: Kind) -> bool:
    return kind.system in (None, platform.system())


def _version(kind: Kind) -> str | None:
    if not _on_this_system(kind) or any(find_spec(package) is None for package in kind.packages):
        return None
    try:
        return version(kind.packages[0])
    except PackageNotFoundError:
        return None
