"""Core ML packages on macOS, through coremltools. Written to its interface, and not run on a Mac so far.

A package is compiled when it is loaded, so that loads here are first ones; apps ship compiled packages.
"""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from profiler.bundle_files import inside, load_manifest
from profiler.errors import InputError, first_line
from profiler.records.bundle import Component, Link
from profiler.records.recipe import ComputeUnit
from profiler.runner.engines.chain import chained
from profiler.runner.engines.coreml_package import open_package
from profiler.runner.engines.engine import EngineFailure, GraphCall
from profiler.runner.engines.installed import KINDS, lack_of

# A recipe's compute unit → the name of coremltools' own.
UNITS: dict[ComputeUnit, str] = {"cpu": "CPU_ONLY", "cpu_gpu": "CPU_AND_GPU", "all": "ALL"}
_NUMPY = {"float32": np.dtype(np.float32), "int32": np.dtype(np.int32)}
_OUT_OF_MEMORY = ("bad_alloc", "out of memory", "cannot allocate memory")

# Takes inputs and returns outputs by name.
Predict = Callable[[dict[str, Any]], Mapping[str, Any]]
# Loads the package in a folder for a unit by coremltools' name.
OpenModel = Callable[[str, str], Predict]


class CoremlEngine:
    """Runs each function's packages on the compute unit that the bundle's recipe names."""

    name = "coreml"

    def __init__(
        self, *, threads: int | None = None, system: str | None = None, open_model: OpenModel | None = None
    ) -> None:
        if (system or platform.system()) != KINDS[self.name].system:
            raise lack_of(self.name)
        if threads is not None:
            raise InputError("Core ML decides itself how many threads it uses", hint="Leave --threads out.")
        self._open = open_model or core_ml()
        self.version = version("coremltools")

    def load(self, name: str, component: Component, folder: Path) -> dict[str, GraphCall]:
        """Compile and load the packages of every function.

        Raises EngineFailure, or InvalidRecord for a package that is not safe to open.
        """
        unit = UNITS[load_manifest(folder).recipe.compute_unit]
        return {
            key: chained(name, function, lambda link: self._load(name, link, folder, unit))
            for key, function in component.functions.items()
        }

    def _load(self, component: str, link: Link, folder: Path, unit: str) -> GraphCall:
        path = inside(folder, link.path)
        open_package(path)  # Core ML follows whatever its manifest names
        try:
            predict = self._open(str(path), unit)
        except Exception as error:  # the framework's errors come as RuntimeError, coremltools' own as Exception
            raise _failure(component, error, "load_failed") from error
        return _graph_call(component, link, predict)


def core_ml() -> OpenModel:
    """Import coremltools, and return what loads a model with it."""
    import coremltools

    def open_model(path: str, unit: str) -> Predict:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = coremltools.models.MLModel(path, compute_units=getattr(coremltools.ComputeUnit, unit))
        try:
            model.get_compiled_model_path()  # a model that the framework refused came with a warning only
        except Exception as error:
            raise RuntimeError(str(told[-1].message) if told else str(error)) from error
        return model.predict  # type: ignore[no-any-return]

    return open_model


def _graph_call(component: str, link: Link, predict: Predict) -> GraphCall:
    dtypes = {port.name: _NUMPY[port.dtype] for port in (*link.inputs, *link.outputs)}
    inputs, outputs = ([port.name for port in side] for side in (link.inputs, link.outputs))

    def call(feeds: Mapping[str, Any]) -> Sequence[Any]:
        given = {name: np.ascontiguousarray(feeds[name], dtype=dtypes[name]) for name in inputs}
        try:
            found = predict(given)
            return [np.asarray(found[name], dtype=dtypes[name]) for name in outputs]
        except Exception as error:  # as above; a KeyError where the package gives other outputs
            raise _failure(component, error, "inference_failed") from error

    return call


def _failure(component: str, error: Exception, reason: str) -> EngineFailure:
    text = first_line(error)
    if isinstance(error, MemoryError) or any(mark in text.lower() for mark in _OUT_OF_MEMORY):
        reason = "out_of_memory"
    return EngineFailure(reason, component, text)
