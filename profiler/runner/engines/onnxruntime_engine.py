"""ONNX Runtime on the CPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Read when the library is loaded: without it every process writes a device id and queues usage events.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

from profiler.bundle_files import inside
from profiler.records.bundle import Component, Function
from profiler.runner.engines.engine import EngineFailure, GraphCall

_OUT_OF_MEMORY = ("bad_alloc", "Failed to allocate memory", "bad allocation")


class OnnxRuntimeEngine:
    """Runs each function as an inference session of its own on the CPU provider."""

    name = "onnxruntime"
    version: str = onnxruntime.__version__

    def __init__(self, *, threads: int | None = None) -> None:
        self._threads = threads
        onnxruntime.set_default_logger_severity(3)

    def load(self, name: str, component: Component, folder: Path) -> dict[str, GraphCall]:
        """Open a session for every function. Raises EngineFailure."""
        options = self._options(component)
        return {
            key: _graph_call(name, function, self.open(name, inside(folder, function.path), options))
            for key, function in component.functions.items()
        }

    def open(self, name: str, path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
        """Open one graph of a component. Raises EngineFailure."""
        try:
            return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the binding raises a family of classes without a common parent of its own
            raise _failure(name, error, "load_failed") from error

    def _options(self, component: Component) -> onnxruntime.SessionOptions:
        options = onnxruntime.SessionOptions()
        # A graph without weights is a few element-wise nodes: a thread pool would only spin beside it.
        threads = 1 if component.parameters == 0 else self._threads
        if threads is not None:
            options.intra_op_num_threads = threads
        # Each session has its own threads, which go on spinning after a call and take the cores from the next
        # session's: without this nano took twice as long on two cores (docs/decisions.md).
        options.add_session_config_entry("session.force_spinning_stop", "1")
        return options


def _graph_call(name: str, function: Function, session: onnxruntime.InferenceSession) -> GraphCall:
    outputs = [port.name for port in function.outputs]
    run = session.run

    def call(feeds: Mapping[str, Any]) -> Sequence[Any]:
        try:
            return run(outputs, feeds)  # type: ignore[no-any-return]
        except Exception as error:  # as above
            raise _failure(name, error, "inference_failed") from error

    return call


def _failure(component: str, error: Exception, reason: str) -> EngineFailure:
    text = str(error) or type(error).__name__
    if isinstance(error, MemoryError) or any(mark in text for mark in _OUT_OF_MEMORY):
        reason = "out_of_memory"
    return EngineFailure(reason, component, text.splitlines()[0])
