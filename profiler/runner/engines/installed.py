"""Which inference runtimes a runner knows and finds, without importing any."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

from profiler.errors import InputError, MissingExtra
from profiler.records.job import EngineName
from profiler.records.recipe import Backend, Runtime
from profiler.runner.engines.engine import Engine


class Kind(NamedTuple):
    """Where a runtime's engine is, the packages it imports (its own first), and the extra they are in."""

    module: str
    cls: str
    packages: tuple[str, ...]
    extra: str | None


KINDS: dict[EngineName, Kind] = {
    "onnxruntime": Kind("onnxruntime_engine", "OnnxRuntimeEngine", ("onnxruntime",), None),
    "executorch": Kind("executorch_engine", "ExecutorchEngine", ("executorch", "torch"), "executorch"),
}
# Backends that ExecuTorch's Python package cannot run, and where they can be.
_ELSEWHERE: dict[Backend, str] = {
    "coreml": "in apps for Apple devices",
    "vulkan": "in apps for Android, or in a runtime that was built with it",
}
_BY_RUNTIME: dict[Runtime, EngineName] = {"onnx": "onnxruntime", "executorch": "executorch"}


def engine_for(runtime: Runtime, backend: Backend | None = None) -> EngineName:
    """Return the engine that runs a recipe's runtime. Raises InputError where this runner has none, or not with that
    backend."""
    if runtime == "coreml":
        raise InputError(
            f"Core ML runs on Apple devices only; this machine has {platform.system()} on {platform.machine()}",
            hint="Here its bundles can be exported, which verifies them with an interpreter: profile export --help",
        )
    if runtime == "executorch" and backend in _ELSEWHERE:
        raise InputError(
            f"ExecuTorch's Python package has no {backend} backend; programs for it run {_ELSEWHERE[backend]}",
            hint="Here such a bundle can be exported, unverified. Measure one for --backend xnnpack.",
        )
    return _BY_RUNTIME[runtime]


def installed() -> dict[str, str]:
    """Return the versions of the runtimes that are there."""
    found = {name: _version(kind) for name, kind in KINDS.items()}
    return {name: number for name, number in found.items() if number is not None}


def open_engine(name: EngineName, *, threads: int | None) -> Engine:
    """Import a runtime and make its engine. Raises MissingExtra."""
    kind = KINDS[name]
    if _version(kind) is None:
        raise lack_of(name)
    make: Callable[..., Engine] = getattr(import_module(f"profiler.runner.engines.{kind.module}"), kind.cls)
    return make(threads=threads)


def lack_of(name: EngineName) -> InputError:
    """Say that a runner has not the engine that a job needs, and how to get it."""
    extra = KINDS[name].extra
    what = f"this runner has no {name}; running this bundle"
    if extra is None:
        return InputError(f"{what} needs it", hint=f"Install it with: pip install {name}")
    return MissingExtra(what, extra)


def _version(kind: Kind) -> str | None:
    if any(find_spec(package) is None for package in kind.packages):
        return None
    try:
        return version(kind.packages[0])
    except PackageNotFoundError:
        return None
