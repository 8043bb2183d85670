"""Constants that an optimiser takes for nothing: onnxscript's leaves out an addition of up to 1e-8, and a factor that
is within 1e-5 of one.

So x / (y + 1e-15), which is 0 where both are, becomes undefined. Its rules look at scalars only, so a constant of this
kind is given an axis.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

# What the rules are about, and how near a constant may come to nothing (onnxscript.rewriter._pattern_ir.Constant).
_NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0}
_RELATIVE, _ABSOLUTE = 1e-5, 1e-8


def keep_small(model: ir.Model) -> None:
    """Protect constants of a graph that is not optimised yet; the graph computes what it did."""
    graph = model.graph
    for node in list(graph):
        for place, value in enumerate(node.inputs):
            if value is not None and _is_taken_for_nothing(node, value) and _has_an_axis(node, 1 - place):
                node.replace_input_with(place, _with_axis(graph, node, value))


def _is_taken_for_nothing(node: ir.Node, value: ir.Value) -> bool:
    neutral = _NEUTRAL.get(node.op_type)
    constant = _constant(value) if neutral is not None else None
    if neutral is None or constant is None or constant.ndim or not np.issubdtype(constant.dtype, np.floating):
        return False
    found = float(constant)
    return found != neutral and math.isclose(found, neutral, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)


def _has_an_axis(node: ir.Node, place: int) -> bool:
    other = node.inputs[place]
    return other is not None and other.shape is not None and len(other.shape) > 0


def _constant(value: ir.Value) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def _with_axis(graph: ir.Graph, node: ir.Node, value: ir.Value) -> ir.Value:
    constant = _constant(value)
    if constant is None:
        return value
    built = ir.node("Constant", [], attributes={"value": ir.tensor(constant.reshape(1))})
    built.outputs[0].name = f"{value.name}_{node.name}"
    graph.insert_before(node, built)
    return built.outputs[0]
