"""Coded weights in ONNX: which operators compute with them, so that they stay coded in the file and in memory.

NF4 layers become MatMulBnb4 (com.microsoft), whose blocks lie along the rows of torch's weight [N, K]. Layers of eight
bits become DequantizeLinear, Transpose, MatMul: without the Transpose, ONNX Runtime 1.32 fuses the two others into a
kernel that rounds activations to eight bits as well (2e-2 off instead of 1e-6). Embeddings look up codes, then decode
the rows found. See docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript.values import Op, Opset

from exporters.quantize import nf4
from exporters.quantize.held import HALF_DECODE, INT8_DECODE, NF4_DECODE

_DOMAIN = "profiler"  # of the operators that stand for decodings between tracing and rewriting
_MICROSOFT = "com.microsoft"
_NF4 = 1  # MatMulBnb4's quant_type
_Schema = onnx.defs.OpSchema


def _placeholder(name: str, inputs: dict[str, str], *attributes: str) -> Op:
    schema = _Schema(
        name,
        _DOMAIN,
        1,
        "",
        inputs=[_Schema.FormalParameter(key, f"tensor({kind})") for key, kind in inputs.items()],
        outputs=[_Schema.FormalParameter("weights", "tensor(float)")],
        attributes=[_Schema.Attribute(key, _Schema.AttrType.INTS, "") for key in attributes],
    )
    return Op(Opset(_DOMAIN, 1), name, schema)


_NF4_NODE = _placeholder("Nf4Decode", {"codes": "uint8", "absmax": "float"}, "shape")
_INT8_NODE = _placeholder("Int8Decode", {"codes": "int8", "scales": "float"})
_HALF_NODE = _placeholder("HalfDecode", {"values": "float16"})


def _nf4_decode(codes: Any, absmax: Any, pairs: Any, shape: Sequence[int]) -> Any:
    return _NF4_NODE(codes, absmax, shape=list(shape))


def _int8_decode(codes: Any, scales: Any) -> Any:
    return _INT8_NODE(codes, scales)


def _half_decode(values: Any) -> Any:
    return _HALF_NODE(values)


# For torch.onnx.export's custom_translation_table.
TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    NF4_DECODE: _nf4_decode,
    INT8_DECODE: _int8_decode,
    HALF_DECODE: _half_decode,
}


def express(model: ir.Model) -> None:
    """Replace decodings by operators that ONNX Runtime has."""
    graph = model.graph
    for node in list(graph):
        if node.op_type == "Gemm" and _decodes(node.inputs[1]):
            _split_gemm(graph, node)
    for node in [node for node in graph if node.domain == _DOMAIN]:
        for user, place in list(node.outputs[0].uses()):
            if user.op_type == "Gather" and place == 0:
                _LOOKED_UP[node.op_type](_Builder(graph, user), user, node)
        _MULTIPLIED[node.op_type](graph, node)
    passes.RemoveUnusedNodesPass()(model)
    passes.RemoveUnusedOpsetsPass()(model)
    if any(node.domain == _MICROSOFT for node in graph):
        model.opset_imports[_MICROSOFT] = 1


def _decodes(value: ir.Value | None) -> bool:
    return value is not None and (node := value.producer()) is not None and node.domain == _DOMAIN


def _split_gemm(graph: ir.Graph, gemm: ir.Node) -> None:
    """Write x·Wᵀ + b as Transpose, MatMul, Add, which is all that torch's linear layers make of Gemm."""
    x, weight, *bias = gemm.inputs
    build = _Builder(graph, gemm)
    product = build("MatMul", x, build("Transpose", weight, perm=[1, 0]))
    build.replace(build("Add", product, bias[0]) if bias else product)


def _multiply_nf4(graph: ir.Graph, node: ir.Node) -> None:
    codes, absmax = node.inputs
    rows, width = node.attributes["shape"].as_ints()
    for user in _multiplied_by(node):
        build = _Builder(graph, user)
        sizes = {"K": width, "N": rows, "block_size": nf4.BLOCK, "quant_type": _NF4}
        build.replace(build("MatMulBnb4", user.inputs[0], codes, absmax, domain=_MICROSOFT, **sizes))
    build = _Builder(graph, node)  # for any other use; removed where there is none
    levels = build("Gather", build.pair_book(), build("Cast", codes, to=ir.DataType.INT32), axis=0)
    blocks = build("Reshape", levels, build.constant(-1, nf4.BLOCK))
    scaled = build("Mul", blocks, build("Unsqueeze", absmax, build.constant(-1)))
    build.replace(build("Reshape", scaled, build.constant(rows, width)))


def _multiplied_by(node: ir.Node) -> list[ir.Node]:
    """Return the MatMuls that take a decoded weight, transposed, as their second factor."""
    transposes = [user for user, _ in node.outputs[0].uses() if user.op_type == "Transpose"]
    uses = [use for transpose in transposes for use in transpose.outputs[0].uses()]
    return [user for user, place in uses if user.op_type == "MatMul" and place == 1]


def _multiply_int8(graph: ir.Graph, node: ir.Node) -> None:
    build = _Builder(graph, node)
    build.replace(build("DequantizeLinear", *node.inputs, axis=0))


def _multiply_half(graph: ir.Graph, node: ir.Node) -> None:
    build = _Builder(graph, node)
    transposes = [user for user, _ in node.outputs[0].uses() if user.op_type == "Transpose"]
    if len(transposes) == len(node.outputs[0].uses()) == 1 and (turned := build.transposed(node.inputs[0])):
        build = _Builder(graph, transposes[0])
        build.replace(build("Cast", turned, to=ir.DataType.FLOAT))
        return
    build.replace(build("Cast", node.inputs[0], to=ir.DataType.FLOAT))


def _look_up_nf4(build: _Builder, gather: ir.Node, node: ir.Node) -> None:
    rows, width = node.attributes["shape"].as_ints()
    alone = len(node.outputs[0].uses()) == 1
    codes = build.shaped(node.inputs[0], (rows, width // 2), alone=alone)
    absmax = build.shaped(node.inputs[1], (rows, width // nf4.BLOCK), alone=alone)
    found, scales = (build("Gather", value, gather.inputs[1], axis=0) for value in (codes, absmax))
    looked_up = [size for size in gather.outputs[0].shape or () if isinstance(size, int)]
    levels = build("Gather", build.pair_book(), build("Cast", found, to=ir.DataType.INT32), axis=0)
    blocks = build("Reshape", levels, build.constant(*looked_up[:-1], width // nf4.BLOCK, nf4.BLOCK))
    scaled = build("Mul", blocks, build("Unsqueeze", scales, build.constant(-1)))
    build.replace(build("Reshape", scaled, build.constant(*looked_up)))


def _look_up_int8(build: _Builder, gather: ir.Node, node: ir.Node) -> None:
    codes, scales = (build("Gather", value, gather.inputs[1], axis=0) for value in node.inputs)
    scale = build("Unsqueeze", scales, build.constant(-1))
    build.replace(build("Mul", build("Cast", codes, to=ir.DataType.FLOAT), scale))


def _look_up_half(build: _Builder, gather: ir.Node, node: ir.Node) -> None:
    found = build("Gather", node.inputs[0], gather.inputs[1], axis=0)
    build.replace(build("Cast", found, to=ir.DataType.FLOAT))


_LOOKED_UP = {"Nf4Decode": _look_up_nf4, "Int8Decode": _look_up_int8, "HalfDecode": _look_up_half}
_MULTIPLIED = {"Nf4Decode": _multiply_nf4, "Int8Decode": _multiply_int8, "HalfDecode": _multiply_half}


class _Builder:
    """Adds nodes in front of one that they replace, named after its output."""

    def __init__(self, graph: ir.Graph, before: ir.Node) -> None:
        self._graph = graph
        self._before = before
        self._name = before.outputs[0].name
        self._count = 0

    def __call__(self, kind: str, *inputs: ir.Value | None, domain: str = "", **attributes: Any) -> ir.Value:
        """Add a node and return its output."""
        self._count += 1
        output = ir.Value(name=f"{self._name}_{kind.lower()}_{self._count}")
        node = ir.node(kind, list(inputs), attributes=attributes, domain=domain, outputs=[output])
        self._graph.insert_before(self._before, node)
        return output

    def constant(self, *values: int) -> ir.Value:
        """Return a constant of whole numbers, int64 [n]."""
        return self._initializer("int64_" + "_".join(map(str, values)), np.array(values, np.int64))

    def pair_book(self) -> ir.Value:
        """Return what a byte of NF4 codes stands for, float32 [256, 2]."""
        return self._initializer("nf4_pairs", nf4.pair_book().numpy())

    def shaped(self, value: ir.Value | None, shape: tuple[int, ...], *, alone: bool) -> ir.Value:
        """Give an initializer another shape: its own, unless other nodes read it too."""
        tensor = value.const_value if value is not None else None
        if not alone or value is None or tensor is None or len(value.uses()) > 1:
            return self("Reshape", value, self.constant(*shape))
        value.const_value = ir.Tensor(tensor.numpy().reshape(shape), name=value.name)
        value.shape = ir.Shape(shape)
        return value

    def transposed(self, value: ir.Value | None) -> ir.Value | None:
        """Turn a matrix that is stored and read once, so that nothing has to be turned when it is loaded."""
        tensor = value.const_value if value is not None else None
        if value is None or tensor is None or len(value.uses()) > 1:
            return None
        value.const_value = ir.Tensor(tensor.numpy().T, name=value.name)
        value.shape = value.const_value.shape
        return value

    def replace(self, new: ir.Value) -> None:
        """Let all that read the old node's output read another value, which takes its name, type and shape."""
        old = self._before.outputs[0]
        new.type, new.shape = old.type, old.shape
        old.name, new.name = f"{old.name}_replaced", old.name
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        self._graph.remove(self._before, safe=True)

    def _initializer(self, name: str, values: Any) -> ir.Value:
        if name not in self._graph.initializers:
            tensor = ir.Tensor(values, name=name)
            value = ir.Value(name=name, shape=tensor.shape, type=ir.TensorType(tensor.dtype), const_value=tensor)
            self._graph.initializers[name] = value
        return self._graph.initializers[name]
