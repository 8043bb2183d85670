"""ExecuTorch programs on the CPU, through its Python binding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

# Not `executorch.runtime`, which is a few lines around this and imports the whole exporter: 355 MiB and 8 s, where
# PyTorch, whose tensors the binding takes, and the binding alone are 221 MiB and 3 s.
from executorch.extension.pybindings import _C as binding  # noqa: N811 - a module

from profiler.bundle_files import inside
from profiler.errors import first_line
from profiler.records.bundle import Component, Function
from profiler.records.plan import Port
from profiler.runner.engines.engine import EngineFailure, GraphCall
from profiler.runner.engines.native_log import native_log

_METHOD = "forward"
# Numbers of ExecuTorch's ScalarType and Error.
_TYPES = {"float32": 6, "int32": 3}
_NO_MEMORY = {0x21, 0x31}
_NUMBER = re.compile(r"error:? 0x:?([0-9a-f]+)")
_OUT_OF_MEMORY = ("bad_alloc", "can't allocate memory")


class ExecutorchEngine:
    """Runs each function as a program of its own; its delegates bring their own kernels."""

    name = "executorch"
    version: str = version("executorch")

    def __init__(self, *, threads: int | None = None) -> None:
        with native_log():  # it tells of the files that only phones have
            if threads is not None:
                binding._unsafe_reset_threadpool(threads)  # safe here: nothing has run yet
            self.threads: int = binding._threadpool_get_thread_count()

    def load(self, name: str, component: Component, folder: Path) -> dict[str, GraphCall]:
        """Open a program for every function. Raises EngineFailure."""
        return {
            key: _graph_call(name, function, self.open(name, function, inside(folder, function.path)))
            for key, function in component.functions.items()
        }

    def open(self, name: str, function: Function, path: Path) -> Any:
        """Open one function's program and compare it with the manifest. Raises EngineFailure."""
        method = open_method(name, path)
        difference = _difference(method.method_meta(), function)
        if difference:
            raise EngineFailure("load_failed", name, f"{path.name} {difference}")
        return method


def open_method(name: str, path: Path) -> Any:
    """Open a program's method, which keeps its program. Raises EngineFailure with what the runtime wrote."""
    with native_log() as said:
        try:
            program = binding._load_program(str(path), program_verification=binding.Verification.InternalConsistency)
            return program.load_method(_METHOD)
        except Exception as error:  # noqa: BLE001 - raised again below, in other words
            failure = error
    raise _failure(name, failure, "load_failed", said) from failure


def _graph_call(name: str, function: Function, method: Any) -> GraphCall:
    ports = [port.name for port in function.inputs]

    def call(feeds: Mapping[str, Any]) -> Sequence[Any]:
        try:
            found = method.call([_tensor(feeds[port]) for port in ports], clone_outputs=False)
        except Exception as error:  # as above
            raise _failure(name, error, "inference_failed") from error
        # The next call writes over what the program hands out.
        return [each.numpy().copy() for each in found]

    return call


def _tensor(values: Any) -> torch.Tensor:
    """Share memory with an array, which the runtime reads in place where it is contiguous."""
    array = np.ascontiguousarray(values)
    return torch.from_numpy(array if array.flags.writeable else array.copy())


def _difference(meta: Any, function: Function) -> str | None:
    """Say in what a program's boundary is not the one that the manifest describes."""
    sides = (
        ("takes", function.inputs, meta.num_inputs(), meta.input_tensor_meta),
        ("returns", function.outputs, meta.num_outputs(), meta.output_tensor_meta),
    )
    for verb, ports, count, tensor in sides:
        if count != len(ports):
            return f"{verb} {count} tensors, the manifest says {len(ports)}"
        for number, port in enumerate(ports):
            found = tensor(number)
            if found.dtype() != _TYPES[port.dtype] or tuple(found.sizes()) != port.shape:
                return f"{verb} {_words(found)} for {port.name}, the manifest says {_port_words(port)}"
    return None


def _words(found: Any) -> str:
    names = {number: name for name, number in _TYPES.items()}
    return f"{names.get(found.dtype(), f'type {found.dtype()}')} {list(found.sizes())}"


def _port_words(port: Port) -> str:
    return f"{port.dtype} {list(port.shape)}"


def _failure(component: str, error: Exception, reason: str, said: Sequence[str] = ()) -> EngineFailure:
    text = first_line(error)
    number = _NUMBER.search(text)
    short = isinstance(error, MemoryError) or any(mark in text for mark in _OUT_OF_MEMORY)
    if short or (number and int(number[1], 16) in _NO_MEMORY):
        reason = "out_of_memory"
    return EngineFailure(reason, component, f"{said[0]} ({text})" if said else text)
