"""Graphs to half precision: float32 at the boundary, in what comes before and after the layers, and in islands.

Only what lies between layers with weights is computed in half precision. So a timestep keeps its fraction and the
image's last operations, on values up to 255, do not round what is rounded next. Norms, sums and softmax stay in
float32, because kernels differ in what they accumulate in. So do products of two activations that no softmax bounds,
up to the next layer: linear attention sums over all tokens and divides afterwards, beyond what half precision holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import onnx_ir.passes.common as passes

from profiler.errors import ModelError

_FLOAT, _HALF = ir.DataType.FLOAT, ir.DataType.FLOAT16
_LARGEST = float(np.finfo(np.float16).max)
_MASK_FROM = 1e30  # larger constants mean "minus infinity" to a softmax; no weight is so large
_LAYERS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}
_ISLANDS = {
    "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "Softmax", "ReduceMean",
    "ReduceSum", "ReduceL2", "CumSum", "Pow", "Sqrt", "Reciprocal", "Exp", "Log", "Sin", "Cos", "Cast", "Range",
    "ConstantOfShape", "Constant", "If", "Loop", "Scan",
}  # fmt: skip
# Operators of which not every float input may be in half precision.
_HALF_INPUTS = {"Resize": (0,)}


def convert(model: ir.Model, stays: Callable[[ir.Node], bool], wide: bool = False) -> None:
    """Compute in half precision between layers; those that `stays` names, and islands, stay in float32.

    Where a graph is `wide`, all between layers stays as well. Weights are converted one at a time as they are written.
    Raises ModelError for one that is too large.
    """
    nodes = list(model.graph)
    large = _large(nodes)
    layers = [node for node in nodes if _is_layer(node) and node not in large and not stays(node)]
    between = {*layers} if wide else _reached(layers, _users) & _reached(layers, _makers)
    halves = [node for node in nodes if node in between - large and node.op_type not in _ISLANDS and not stays(node)]
    _Converter(model.graph, halves).run()
    passes.RemoveUnusedNodesPass()(model)


def nothing(node: ir.Node) -> bool:
    """Let no layer stay."""
    return False


def has_plain_weight(node: ir.Node) -> bool:
    """Tell whether a layer's weight is stored in float32, as a scheme's kept ones are."""
    weight = node.inputs[1] if node.op_type in _LAYERS else None
    return weight is not None and weight.is_initializer() and weight.dtype is _FLOAT


def _users(node: ir.Node) -> Iterable[ir.Node]:
    return (user for output in node.outputs for user, _ in output.uses())


def _makers(node: ir.Node) -> Iterable[ir.Node]:
    return (maker for value in node.inputs if value is not None and (maker := value.producer()) is not None)


def _reached(start: Iterable[ir.Node], neighbours: Callable[[ir.Node], Iterable[ir.Node]]) -> set[ir.Node]:
    found: set[ir.Node] = set()
    waiting = list(start)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += neighbours(node)
    return found


def _large(nodes: list[ir.Node]) -> set[ir.Node]:
    """Return what exceeds half precision without being an island: unbounded products with what follows them up to a
    layer, and what stands between two islands, such as a norm's epsilon on a mean of squares."""
    moving = _following_inputs(nodes)
    products = [node for node in nodes if node.op_type == "MatMul" and _is_unbounded(node, moving)]
    after = _reached([user for product in products for user in _users(product)], _users_before_layers)
    between = [node for node in nodes if _is_between_islands(node)]
    return {*products, *between, *(node for node in after if not _is_layer(node))}


def _is_unbounded(product: ir.Node, moving: set[ir.Value | None]) -> bool:
    """Tell whether a product of two activations neither feeds a softmax nor comes from one."""
    if not all(value in moving for value in product.inputs):
        return False
    near = _reached(_users(product), _users_before_layers) | _reached(_makers(product), _makers_after_layers)
    return not any(node.op_type == "Softmax" for node in near)


def _is_between_islands(node: ir.Node) -> bool:
    makers, users = list(_makers(node)), list(_users(node))
    return bool(makers and users) and all(each.op_type in _ISLANDS for each in (*makers, *users))


def _is_layer(node: ir.Node) -> bool:
    return node.op_type in _LAYERS


def _following_inputs(nodes: list[ir.Node]) -> set[ir.Value | None]:
    """Return the values that follow from a graph's inputs, among nodes in order; all others follow from weights."""
    found: set[ir.Value | None] = set()
    for node in nodes:
        if any(value in found or (value is not None and value.is_graph_input()) for value in node.inputs):
            found |= {*node.outputs, *(value for value in node.inputs if value is not None and value.is_graph_input())}
    return found


def _users_before_layers(node: ir.Node) -> Iterable[ir.Node]:
    return () if _is_layer(node) else _users(node)


def _makers_after_layers(node: ir.Node) -> Iterable[ir.Node]:
    return () if _is_layer(node) else _makers(node)


class _Converter:
    """Gives values a second form where a reader needs another type than the writer makes."""

    def __init__(self, graph: ir.Graph, halves: list[ir.Node]) -> None:
        self._graph = graph
        self._halves = halves
        self._narrow: dict[ir.Value, ir.Value] = {}
        self._wide: dict[ir.Value, ir.Value] = {}
        # A dict, because a set's order differs from process to process and would show in the file.
        self._turned = dict.fromkeys(value for node in halves for value in node.outputs if value.dtype is _FLOAT)

    def run(self) -> None:
        """Change types, then put casts where they meet."""
        halves = set(self._halves)
        wide_readers = [use for value in self._turned for use in value.uses() if use[0] not in halves]
        for value in self._turned:
            value.dtype = _HALF
        for node in self._halves:
            self._narrow_inputs(node)
        for node, place in wide_readers:
            if (wide := node.inputs[place]) is not None:
                node.replace_input_with(place, self._widened(wide))
        for index, output in enumerate(self._graph.outputs):
            if output in self._turned:
                self._graph.outputs[index] = self._widened(output, takes_name=True)

    def _narrow_inputs(self, node: ir.Node) -> None:
        places = _HALF_INPUTS.get(node.op_type, range(len(node.inputs)))
        for place in places:
            value = node.inputs[place]
            if value is not None and value.dtype is _FLOAT:
                node.replace_input_with(place, self._narrowed(value))

    def _narrowed(self, value: ir.Value) -> ir.Value:
        if value not in self._narrow:
            self._narrow[value] = _stored_half(value) or self._half_initializer(value) or self._cast(value, _HALF)
        return self._narrow[value]

    def _widened(self, value: ir.Value, *, takes_name: bool = False) -> ir.Value:
        if value not in self._wide:
            self._wide[value] = self._cast(value, _FLOAT)
        if takes_name:
            name, value.name = value.name, f"{value.name}_half"
            self._wide[value].name = name
        return self._wide[value]

    def _half_initializer(self, value: ir.Value) -> ir.Value | None:
        tensor = value.const_value
        if not value.is_initializer() or tensor is None:
            return None
        _check_range(tensor, str(value.name))
        name = f"{value.name}_half"
        shape = ir.Shape([int(size) for size in tensor.numpy().shape])
        lazy = ir.LazyTensor(partial(_to_half, tensor, name), dtype=_HALF, shape=shape, name=name)
        half = ir.Value(name=name, shape=shape, type=ir.TensorType(_HALF), const_value=lazy)
        self._graph.initializers[name] = half
        return half

    def _cast(self, value: ir.Value, to: ir.DataType) -> ir.Value:
        name = f"{value.name}_{'half' if to is _HALF else 'float'}"
        output = ir.Value(name=name, shape=value.shape, type=ir.TensorType(to))
        node = ir.node("Cast", [value], attributes={"to": to}, outputs=[output])
        maker = value.producer()
        if maker is None:
            self._graph.insert_before(self._graph[0], node)
        else:
            self._graph.insert_after(maker, node)
        return output


def _stored_half(value: ir.Value) -> ir.Value | None:
    """Return the half-precision weight that a value is the widened form of."""
    maker = value.producer()
    source = maker.inputs[0] if maker is not None and maker.op_type == "Cast" else None
    return source if source is not None and source.dtype is _HALF else None


def _check_range(tensor: Any, name: str) -> None:
    values = tensor.numpy()
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    if _LARGEST < largest < _MASK_FROM:
        raise ModelError(
            f"{name} holds {largest:.3g}, which is beyond half precision (±{_LARGEST:g})",
            hint="Export with --precision fp32.",
        )


def _to_half(tensor: Any, name: str) -> ir.Tensor[Any]:
    values: npt.NDArray[np.float32] = tensor.numpy()
    return ir.Tensor(np.clip(values, -_LARGEST, _LARGEST).astype(np.float16), name=name)
