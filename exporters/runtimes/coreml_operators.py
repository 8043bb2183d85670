"""Torch operators that coremltools does not know or gets wrong, and coded weights as MIL's own compressed constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from coremltools.converters.mil import Builder
from coremltools.converters.mil.frontend.torch import ops
from coremltools.converters.mil.frontend.torch.torch_op_registry import register_torch_op
from coremltools.converters.mil.mil import types

from exporters.quantize import nf4
from profiler.records.recipe import Precision

# Rewrites our table × scale to one table a block, which is a third larger and no smaller in memory.
UNWANTED_PASS = "common::canonicalize_quantized_lut_pattern"


def register_operators(precision: Precision) -> None:
    """Teach coremltools our operators, as a program of this precision needs them."""
    _register("alias", _alias)  # text encoders end in it; apple/coremltools issue 2517
    _register("gelu", _gelu)  # coremltools 9.0 does not see torch.export's keyword, and makes the exact one of all
    _register("profiler.nf4_decode", _nf4_decode)
    _register("profiler.int8_decode", _int8_decode)
    _register("profiler.half_decode", _half_decode if precision == "fp16" else _half_decode_to_fp32)


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


def _nf4_decode(context: Any, node: Any) -> None:
    """Emit a table of 16 levels and one scale per 64 weights of a row; float16 follows from the program's precision."""
    codes, absmax, _, shape = ops._get_inputs(context, node, expected=4)
    size = [int(each) for each in (shape.val if hasattr(shape, "val") else [each.val for each in shape])]
    width = size[-1]
    if width % nf4.BLOCK:
        raise ValueError(f"{node.name}: NF4 rows of {width} do not end at a block's end")
    book = np.asarray(nf4.CODE_BOOK, dtype=np.float32).reshape(*[1] * len(size), len(nf4.CODE_BOOK), 1)
    levels = Builder.constexpr_lut_to_dense(
        indices=_four_bit(codes.val).reshape(size).astype(types.np_uint4_dtype), lut=book, name=f"{node.name}_levels"
    )
    scales = absmax.val.astype(np.float32).reshape(*size[:-1], width // nf4.BLOCK)
    context.add(Builder.constexpr_blockwise_shift_scale(data=levels, scale=scales, name=node.name))


def _four_bit(packed: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Unpack two codes a byte, the first in the high half."""
    data = packed.astype(np.uint8).reshape(-1)
    return np.stack([data >> 4, data & 15], axis=-1).reshape(-1)


def _int8_decode(context: Any, node: Any) -> None:
    """Emit symmetric linear quantization with one scale a row."""
    codes, scales = ops._get_inputs(context, node, expected=2)
    data = codes.val.astype(np.int8)
    scale = scales.val.astype(np.float32).reshape(-1, *[1] * (data.ndim - 1))
    context.add(Builder.constexpr_blockwise_shift_scale(data=data, scale=scale, name=node.name))


def _half_decode(context: Any, node: Any) -> None:
    """Emit a constant that the program's own precision stores as it was, in float16."""
    (values,) = ops._get_inputs(context, node, expected=1)
    context.add(Builder.const(val=values.val.astype(np.float32), name=node.name))


def _half_decode_to_fp32(context: Any, node: Any) -> None:
    """Emit a float16 constant that is widened when it is loaded."""
    (values,) = ops._get_inputs(context, node, expected=1)
    context.add(Builder.constexpr_cast(source_val=values.val.astype(np.float16), output_dtype="fp32", name=node.name))
