"""Small MIL programs as packages, written without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("coremltools")

from exporters.quiet import quiet

with quiet():
    import coremltools
    from coremltools.converters.mil import Builder

from exporters.coreml_package import write_package
from exporters.verify_coreml import Program, read_program
from profiler.runner.engines.coreml_package import open_package


def save(
    folder: Path, shapes: Mapping[str, tuple[int, ...]], build: Callable[..., Any], *, halves: bool = False
) -> Path:
    """Save what `build` makes of inputs of these shapes; its inputs and outputs stay float32."""
    specs = [Builder.TensorSpec(shape=shape) for shape in shapes.values()]
    names = ", ".join(shapes)
    # Builder takes the inputs' names from the function's own.
    function: Any = eval(f"lambda {names}: build({names})", {"build": build})
    target = coremltools.target.iOS18
    with quiet():
        program = Builder.program(input_specs=specs, opset_version=target)(function)
        model = coremltools.convert(
            program,
            minimum_deployment_target=target,
            compute_precision=coremltools.precision.FLOAT16 if halves else coremltools.precision.FLOAT32,
            inputs=[coremltools.TensorType(name=name, shape=shape, dtype=np.float32) for name, shape in shapes.items()],
            skip_model_load=True,
        )
    weights = Path(model.weights_dir) / "weight.bin"
    write_package(folder, model.get_spec().SerializeToString(), weights if weights.is_file() else None)
    return folder


def load(folder: Path) -> Program:
    """Read a saved package."""
    return read_program(open_package(folder))
