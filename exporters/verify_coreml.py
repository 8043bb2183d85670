"""Runs saved Core ML packages on any machine, to measure how far they are from their source.

An interpreter of the MIL program in the package: it reads specification and weights itself, so that a fault of the
converter or of what was written shows. It is no model of Apple's compiler, whose kernels and devices may differ.

Every operation computes in float32 on what it is given, and its result is rounded to float16 where the program
declares it so: what a device does that accumulates in float32, the best case of those that do not. Operations that a
device takes in several steps (attention, softmax, norms) are rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from coremltools.proto import MIL_pb2, Model_pb2

from exporters.mil_constants import CODED, Constants, rounded, widened
from exporters.mil_ops import OPERATIONS, Unsupported, check_indices
from exporters.mil_weights import BrokenBlob
from profiler import __version__
from profiler.bundle_files import inside
from profiler.records.bundle import Component, Link
from profiler.runner.engines.chain import chained
from profiler.runner.engines.coreml_package import Package, open_package
from profiler.runner.engines.engine import EngineFailure, GraphCall

_NUMPY = {"float32": np.dtype(np.float32), "int32": np.dtype(np.int32)}


class MilInterpreter:
    """Loads packages as an engine does, without Apple's runtime."""

    name = "mil-interpreter"
    version = __version__

    def load(self, name: str, component: Component, folder: Path) -> dict[str, GraphCall]:
        """Read every function's package. Raises EngineFailure, or InvalidRecord for a package that is not safe."""
        return {
            key: chained(name, function, lambda link: _graph_call(name, link, folder))
            for key, function in component.functions.items()
        }


class Step(NamedTuple):
    """One operation, bound to the names of what it takes; `forget` is what nobody takes after it."""

    kind: str
    compute: Callable[..., Any]
    bind: Mapping[str, str | tuple[str, ...]]
    outputs: tuple[str, ...]
    halves: tuple[bool, ...]
    forget: tuple[str, ...]


class Program(NamedTuple):
    """A package's main function, ready to run."""

    constants: Constants
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]

    def run(self, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Compute the outputs by name. Raises Unsupported or BrokenBlob."""
        values: dict[str, Any] = dict(inputs)
        with torch.no_grad():
            for step in self.steps:
                results = self._results(step, values)
                values.update(zip(step.outputs, results, strict=True))
                for name in step.forget:
                    values.pop(name, None)
        return {name: self._value(name, values) for name in self.outputs}

    def _results(self, step: Step, values: Mapping[str, Any]) -> list[Any]:
        try:
            found = step.compute(**self._given(step, values))
        except BrokenBlob:
            raise
        except Exception as error:  # an unknown input is a TypeError, a shape that does not fit torch's own
            raise Unsupported(f"{step.kind} ({step.outputs[0]}): {error}") from error
        results = list(found) if isinstance(found, tuple) else [found]
        return [rounded(each) if half else each for each, half in zip(results, step.halves, strict=True)]

    def _given(self, step: Step, values: Mapping[str, Any]) -> dict[str, Any]:
        table = step.bind.get("x")
        looks_up = step.kind == "gather" and isinstance(table, str) and table in self.constants
        given = {
            port: self._value(name, values) if isinstance(name, str) else [self._value(each, values) for each in name]
            for port, name in step.bind.items()
            if not (looks_up and port == "x")
        }
        return self._looked_up(str(table), given) if looks_up else given

    def _looked_up(self, table: str, given: dict[str, Any]) -> dict[str, Any]:
        """Give a lookup only the rows of its table that it asks for: a vocabulary is most of a small encoder."""
        if int(given.get("axis", 0)) or int(given.get("batch_dims", 0)):
            return {**given, "x": widened(self.constants[table])}
        check_indices(given["indices"])
        rows, indices = torch.unique(given["indices"].to(torch.int64), return_inverse=True)
        return {**given, "x": widened(self.constants.rows(table, rows)), "indices": indices}

    def _value(self, name: str, values: Mapping[str, Any]) -> Any:
        return values[name] if name in values else widened(self.constants[name])


def read_specification(package: Package) -> Any:
    """Parse a package's specification. Raises Unsupported for what is no MIL program."""
    specification = Model_pb2.Model()
    try:
        specification.ParseFromString(package.model.read_bytes())
    except Exception as error:  # protobuf's own DecodeError is not public in all its versions
        raise Unsupported(f"{package.model.name} is no Core ML model: {error}") from error
    if specification.WhichOneof("Type") != "mlProgram" or "main" not in specification.mlProgram.functions:
        raise Unsupported(f"{package.model.name} holds no MIL program with a function main")
    return specification


def read_program(package: Package) -> Program:
    """Read a checked package's main function. Raises Unsupported or BrokenBlob."""
    main = read_specification(package).mlProgram.functions["main"]
    block = main.block_specializations[main.opset]
    constants = Constants(package)
    unlinked: list[Step] = []
    for operation in block.operations:
        if operation.type == "const":
            constants.add(operation.outputs[0].name, operation.attributes["val"])
            continue
        step = _step(operation, constants)
        if operation.type.startswith(CODED):
            constants.decode(operation, {port: str(name) for port, name in step.bind.items()})
        else:
            unlinked.append(step)
    outputs = tuple(block.outputs)
    return Program(constants, _with_forgetting(unlinked, outputs), outputs)


def _step(operation: Any, constants: Constants) -> Step:
    if operation.type not in OPERATIONS:
        raise Unsupported(f"operation {operation.type} ({operation.outputs[0].name}) is not known to the interpreter")
    if operation.blocks:
        raise Unsupported(f"operation {operation.type} has blocks, which the interpreter does not run")
    bind: dict[str, str | tuple[str, ...]] = {}
    for port, argument in operation.inputs.items():
        names = [
            _bound(f"\0{operation.outputs[0].name}.{port}.{number}", binding, constants)
            for number, binding in enumerate(argument.arguments)
        ]
        bind[port] = tuple(names) if port == "values" else names[0]
    return Step(
        kind=operation.type,
        compute=OPERATIONS[operation.type],
        bind=bind,
        outputs=tuple(output.name for output in operation.outputs),
        halves=tuple(output.type.tensorType.dataType == MIL_pb2.FLOAT16 for output in operation.outputs),
        forget=(),
    )


def _bound(own_name: str, binding: Any, constants: Constants) -> str:
    """Return what an argument is bound to; a value that stands in its place gets a name."""
    if binding.WhichOneof("binding") == "name":
        return str(binding.name)
    constants.add(own_name, binding.value)
    return own_name


def _with_forgetting(steps: Sequence[Step], outputs: Sequence[str]) -> tuple[Step, ...]:
    """Let go of each value after its last use, so that memory is what the widest point needs."""
    needed = set(outputs)
    found = []
    for step in reversed(steps):
        taken = {each for name in step.bind.values() for each in ((name,) if isinstance(name, str) else name)}
        dead = {*taken, *step.outputs} - needed
        needed |= taken
        found.append(step._replace(forget=tuple(sorted(dead))))
    return tuple(reversed(found))


def _graph_call(component: str, link: Link, folder: Path) -> GraphCall:
    package = open_package(inside(folder, link.path))
    try:
        program = read_program(package)
    except (Unsupported, BrokenBlob) as error:
        raise EngineFailure("load_failed", component, str(error)) from error
    ports = {port.name: port for port in link.inputs}

    def call(feeds: Mapping[str, Any]) -> Sequence[Any]:
        for name, port in ports.items():
            given = np.asarray(feeds[name])
            if given.shape != port.shape or given.dtype != _NUMPY[port.dtype]:
                detail = f"{name} is {given.dtype} {given.shape}, not {port.dtype} {port.shape}"
                raise EngineFailure("inference_failed", component, detail)
        try:
            found = program.run({name: torch.from_numpy(np.ascontiguousarray(feeds[name])) for name in ports})
            return [found[port.name].numpy() for port in link.outputs]
        except (Unsupported, BrokenBlob) as error:
            raise EngineFailure("inference_failed", component, str(error)) from error

    return call
