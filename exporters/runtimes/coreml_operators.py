"""Torch operators that coremltools does not know or gets wrong, and those that decode weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coremltools.converters.mil import Builder
from coremltools.converters.mil.frontend.torch import ops
from coremltools.converters.mil.frontend.torch.torch_op_registry import register_torch_op

from exporters.runtimes.coreml_coded import CodedWeights

# Rewrites our table × scale to one table a block, which is a third larger and no smaller in memory.
UNWANTED_PASS = "common::canonicalize_quantized_lut_pattern"


def register_operators(coded: CodedWeights) -> None:
    """Teach coremltools our operators; the program converted next leaves its coded weights in `coded`."""
    _register("alias", _alias)  # text encoders end in it; apple/coremltools issue 2517
    _register("gelu", _gelu)  # coremltools 9.0 does not see torch.export's keyword, and makes the exact one of all
    for name, emit in (("nf4_decode", _nf4_decode), ("int8_decode", _int8_decode), ("half_decode", _half_decode)):
        _register(f"profiler.{name}", _decoding(emit, coded))


def _register(name: str, convert: Callable[[Any, Any], None]) -> None:
    def converted(context: Any, node: Any) -> None:
        convert(context, node)

    # A function's own name is registered too, and must not shadow an operator of torch.
    converted.__name__ = f"profiler_{name.replace('.', '_')}"
    register_torch_op(converted, torch_alias=[name, name.replace(".", "::")], override=True)


def _alias(context: Any, node: Any) -> None:
    (x,) = ops._get_inputs(context, node, expected=1)
    context.add(Builder.identity(x=x, name=node.name))


def _gelu(context: Any, node: Any) -> None:
    x, *rest = ops._get_inputs(context, node, expected=[1, 2])
    (approximate,) = rest or ops._get_kwinputs(context, node, "approximate", default=["none"])
    mode = "TANH_APPROXIMATION" if getattr(approximate, "val", approximate) == "tanh" else "EXACT"
    context.add(Builder.gelu(x=x, mode=mode, name=node.name))


def _decoding(emit: Callable[..., Any], coded: CodedWeights) -> Callable[[Any, Any], None]:
    def converted(context: Any, node: Any) -> None:
        context.add(emit(coded, node.name, *ops._get_inputs(context, node)))

    return converted


def _nf4_decode(coded: CodedWeights, name: str, codes: Any, absmax: Any, _pairs: Any, shape: Any) -> Any:
    sizes = shape.val if hasattr(shape, "val") else [each.val for each in shape]
    return coded.nf4(name, [int(size) for size in sizes], codes.val, absmax.val)


def _int8_decode(coded: CodedWeights, name: str, codes: Any, scales: Any) -> Any:
    return coded.int8(name, codes.val, scales.val)


def _half_decode(coded: CodedWeights, name: str, values: Any) -> Any:
    return coded.half(name, values.val)
