"""What every foreign graph tells of itself, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from profiler.errors import InputError
from profiler.records.bundle import Component
from profiler.records.plan import Port
from profiler.records.recipe import ComputeUnit, Precision
from profiler.runner.engines.engine import Engine

COMPONENT, FUNCTION, FOLDER = "model", "run", "components/model"

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Tensor:
    """A tensor at a graph's boundary: its own name and NumPy type, and the port by which a runner reaches it."""

    name: str
    dtype: str
    port: Port

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.port.shape)}"


class Foreign(Protocol):
    """An opened graph. `files` are all it consists of, `packages` those whose versions the manifest records."""

    runtime: str
    precision: Precision
    compute_unit: ComputeUnit
    opset: int | None
    packages: tuple[str, ...]
    not_run: str | None
    inputs: tuple[Tensor, ...]
    files: tuple[Path, ...]

    def engine(self) -> Engine:
        """Return what runs it here."""

    def write(self, folder: Path, feeds: Mapping[str, object]) -> Component:
        """Copy it below a bundle's folder; `feeds` are there where only a run tells what comes out."""

    def end_in_image(self, folder: Path, component: Component, output: str, values: ValueRange) -> Component | None:
        """Let an output [1, 3, height, width] end in 0–255, and return the component; None where that cannot be."""


ValueRange = tuple[float, float]
PIXELS: ValueRange = (0.0, 255.0)


def listed(tensors: Sequence[Tensor]) -> str:
    """Write tensors in one line."""
    return "; ".join(str(tensor) for tensor in tensors) or "none"


def refuse_shapes(shapes: Shapes, path: Path) -> None:
    """Raise InputError where a shape is asked of a format whose graphs have theirs for good."""
    if shapes:
        raise InputError(
            f"{path.name} has its shapes for good; --shape is for ONNX", hint="Export it again with the shapes wanted."
        )


def with_output(component: Component, old: str, new: Port) -> Component:
    """Return a component whose only function has one output replaced."""
    function = component.functions[FUNCTION]
    outputs = tuple(new if port.name == old else port for port in function.outputs)
    return replace(component, functions={FUNCTION: replace(function, outputs=outputs)})
