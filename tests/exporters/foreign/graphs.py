"""Small graphs as others would bring them, in each format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE = 8
FLOAT = TensorProto.FLOAT
IMAGE = (1, 3, SIDE, SIDE)
Value = tuple[str, int, Sequence[int | str] | None]


def save_onnx(
    path: Path,
    nodes: Sequence[Any],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    weights: Mapping[str, np.ndarray[Any, Any]] | None = None,
    *,
    opset: int = 20,
) -> Path:
    """Write a graph with its weights inside."""
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def image_net(path: Path, *, height: int | str = SIDE, dtype: Any = np.float32, opset: int = 20) -> Path:
    """Write a 1×1 convolution to [1, 3, H, W], then a sigmoid: an image of 0–1."""
    kernel = np.linspace(-1, 1, 9, dtype=dtype).reshape(3, 3, 1, 1)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = (1, 3, height, SIDE)
    nodes = [
        helper.make_node("Conv", ["sample", "kernel"], ["mixed"]),
        helper.make_node("Sigmoid", ["mixed"], ["image"]),
    ]
    return save_onnx(path, nodes, [("sample", kind, shape)], [("image", kind, shape)], {"kernel": kernel}, opset=opset)


def scaled(path: Path, factor: float, shape: Sequence[int | str] = (1, 4)) -> Path:
    """Write y = factor · x."""
    nodes = [helper.make_node("Mul", ["x", "factor"], ["y"])]
    weights = {"factor": np.array(factor, np.float32)}
    return save_onnx(path, nodes, [("x", FLOAT, shape)], [("y", FLOAT, shape)], weights)


def externalised(path: Path, location: str = "weights.bin") -> Path:
    """Move a graph's weights into a file beside it."""
    model = onnx.load(str(path))
    onnx.save_model(model, str(path), save_as_external_data=True, location=location, size_threshold=0)
    return path


def with_location(path: Path, location: str) -> Path:
    """Let the first external weight of a graph name another file."""
    model = onnx.load(str(path), load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    path.write_bytes(model.SerializeToString())
    return path


def save_pte(path: Path, module: Any, *examples: Any) -> Path:
    """Lower a module for XNNPACK."""
    import torch

    from exporters.runtimes.executorch import lower, write

    with torch.no_grad():
        write(lower("net", torch.export.export(module.eval(), examples, strict=False)), path)
    return path


def save_mlpackage(path: Path, module: Any, inputs: Sequence[Any], examples: Sequence[Any], **options: Any) -> Path:
    """Convert a module to a MIL program."""
    import coremltools
    import torch

    from exporters.quiet import quiet

    with quiet(), torch.no_grad():
        traced = torch.jit.trace(module.eval(), tuple(examples))
        coremltools.convert(
            traced,
            convert_to="mlprogram",
            minimum_deployment_target=coremltools.target.iOS18,
            inputs=list(inputs),
            skip_model_load=True,
            **options,
        ).save(str(path))
    return path


Build = Callable[[Path], Path]
