"""What MIL's operations mean, in torch: those that our exports use, and no others.

Each function takes the operation's inputs by their MIL names; an input that is missing has MIL's default
(coremltools' documentation of `mil/mil/ops/defs`, opsets iOS 15 to iOS 18). Floats come as float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Operation = Callable[..., Any]
_CASTS = {
    "fp16": torch.float32,  # rounded by the interpreter, as any other result that is declared fp16
    "fp32": torch.float32,
    "int32": torch.int32,
    "int16": torch.int16,
    "uint16": torch.int32,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "bool": torch.bool,
}
_CONVOLUTIONS: dict[int, Operation] = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_GELU = {"EXACT": "none", "TANH_APPROXIMATION": "tanh"}


class Unsupported(Exception):
    """A variant of an operation that is not implemented here."""


def ints(value: Tensor) -> list[int]:
    """Return a constant as Python integers."""
    return [int(each) for each in value.reshape(-1).tolist()]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return functional.linear(x, weight, bias)


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    strides: Tensor | None = None,
    pad_type: str = "valid",
    pad: Tensor | None = None,
    dilations: Tensor | None = None,
    groups: Tensor | None = None,
) -> Tensor:
    rank = x.dim() - 2
    if pad_type == "custom" and pad is not None:
        x = functional.pad(x, _torch_padding(ints(pad)))
    elif pad_type != "valid":
        raise Unsupported(f"pad_type {pad_type}")
    stride = ints(strides) if strides is not None else [1] * rank
    dilation = ints(dilations) if dilations is not None else [1] * rank
    found: Tensor = _CONVOLUTIONS[rank](
        x, weight, bias, stride=stride, dilation=dilation, groups=int(groups) if groups is not None else 1
    )
    return found


def matmul(x: Tensor, y: Tensor, transpose_x: Tensor | bool = False, transpose_y: Tensor | bool = False) -> Tensor:
    return (x.mT if transpose_x else x) @ (y.mT if transpose_y else y)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=attn_mask)


def layer_norm(
    x: Tensor,
    axes: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: Tensor | float = 1e-5,
) -> Tensor:
    over = sorted(axis % x.dim() for axis in ints(axes)) if axes is not None else list(range(x.dim()))
    if over != list(range(over[0], x.dim())):
        raise Unsupported(f"axes {over} of {x.dim()}")
    return functional.layer_norm(x, x.shape[over[0] :], gamma, beta, float(epsilon))


def batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    epsilon: Tensor | float = 1e-5,
) -> Tensor:
    return functional.batch_norm(x, mean, variance, gamma, beta, eps=float(epsilon))


def softmax(x: Tensor, axis: Tensor | int = -1) -> Tensor:
    return torch.softmax(x, dim=int(axis))


def gelu(x: Tensor, mode: str = "EXACT") -> Tensor:
    if mode not in _GELU:
        raise Unsupported(f"mode {mode}")
    return functional.gelu(x, approximate=_GELU[mode])


def leaky_relu(x: Tensor, alpha: Tensor | float = 0.01) -> Tensor:
    return torch.where(x >= 0, x, x * float(alpha))


def rsqrt(x: Tensor, epsilon: Tensor | float = 1e-12) -> Tensor:
    return torch.rsqrt(x + float(epsilon))


def inverse(x: Tensor, epsilon: Tensor | float = 1e-4) -> Tensor:
    return 1 / (x + float(epsilon))


def log(x: Tensor, epsilon: Tensor | float = 1e-45) -> Tensor:
    return torch.log(x + float(epsilon))


def clip(x: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    return x.clamp(float(alpha), float(beta))


def real_div(x: Tensor, y: Tensor) -> Tensor:
    if not x.is_floating_point():
        raise Unsupported("division of integers")
    return x / y


def _reduction(reduce: Operation) -> Operation:
    def reduced(x: Tensor, axes: Tensor | None = None, keep_dims: Tensor | bool = False) -> Tensor:
        over = ints(axes) if axes is not None else list(range(x.dim()))
        found: Tensor = reduce(x, dim=over, keepdim=bool(keep_dims))
        return found

    return reduced


def concat(values: Sequence[Tensor], axis: Tensor, interleave: Tensor | bool = False) -> Tensor:
    if interleave:
        raise Unsupported("interleave")
    return torch.cat(list(values), dim=int(axis))


def stack(values: Sequence[Tensor], axis: Tensor) -> Tensor:
    return torch.stack(list(values), dim=int(axis))


def split(
    x: Tensor, axis: Tensor, num_splits: Tensor | None = None, split_sizes: Tensor | None = None
) -> tuple[Tensor, ...]:
    along = int(axis)
    if split_sizes is not None:
        return torch.split(x, ints(split_sizes), dim=along)
    if num_splits is None or x.shape[along] % int(num_splits):
        raise Unsupported("parts of different sizes without their sizes")
    return torch.split(x, x.shape[along] // int(num_splits), dim=along)


def expand_dims(x: Tensor, axes: Tensor) -> Tensor:
    rank = x.dim() + axes.numel()
    for axis in sorted(axis % rank for axis in ints(axes)):
        x = x.unsqueeze(axis)
    return x


def squeeze(x: Tensor, axes: Tensor | None = None) -> Tensor:
    return x.squeeze(tuple(ints(axes))) if axes is not None else x.squeeze()


def reshape(x: Tensor, shape: Tensor) -> Tensor:
    return x.reshape([x.shape[axis] if size == 0 else size for axis, size in enumerate(ints(shape))])


def transpose(x: Tensor, perm: Tensor) -> Tensor:
    return x.permute(ints(perm))


def tile(x: Tensor, reps: Tensor) -> Tensor:
    return x.repeat(ints(reps))


def slice_by_index(
    x: Tensor,
    begin: Tensor,
    end: Tensor,
    stride: Tensor | None = None,
    begin_mask: Tensor | None = None,
    end_mask: Tensor | None = None,
    squeeze_mask: Tensor | None = None,
) -> Tensor:
    steps = ints(stride) if stride is not None else [1] * x.dim()
    from_start = _flags(begin_mask, x.dim())
    to_end = _flags(end_mask, x.dim())
    single = _flags(squeeze_mask, x.dim())
    if min(steps) < 1:
        raise Unsupported("a slice that goes backwards")
    found: list[slice | int] = []
    for axis, (first, last, step) in enumerate(zip(ints(begin), ints(end), steps, strict=True)):
        if single[axis]:
            found.append(first)
        else:
            found.append(slice(None if from_start[axis] else first, None if to_end[axis] else last, step))
    return x[tuple(found)]


def slice_by_size(x: Tensor, begin: Tensor, size: Tensor) -> Tensor:
    taken = zip(ints(begin), ints(size), strict=True)
    return x[tuple(slice(first, None if count == -1 else first + count) for first, count in taken)]


def select(cond: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.where(cond, a, b)


def cast(x: Tensor, dtype: str) -> Tensor:
    return x.to(_CASTS[dtype])


def gather(
    x: Tensor,
    indices: Tensor,
    axis: Tensor | int = 0,
    batch_dims: Tensor | int = 0,
    validate_indices: Tensor | bool = False,
) -> Tensor:
    del validate_indices  # torch always does
    if int(batch_dims):
        raise Unsupported("batch_dims")
    check_indices(indices)
    along = int(axis) % x.dim()
    found = torch.index_select(x, along, indices.reshape(-1).to(torch.int64))
    return found.reshape(*x.shape[:along], *indices.shape, *x.shape[along + 1 :])


def gather_nd(
    x: Tensor, indices: Tensor, batch_dims: Tensor | int = 0, validate_indices: Tensor | bool = False
) -> Tensor:
    del validate_indices
    if int(batch_dims):
        raise Unsupported("batch_dims")
    check_indices(indices)
    return x[tuple(indices.to(torch.int64).unbind(-1))]


def check_indices(indices: Tensor) -> None:
    """Raise Unsupported for an index that counts from the end."""
    if indices.numel() and int(indices.min()) < 0:
        raise Unsupported("an index below zero, which is undefined from iOS 17 on")


def pad(x: Tensor, pad: Tensor, mode: str = "constant", constant_val: Tensor | float = 0.0) -> Tensor:
    torch_mode = {"constant": "constant", "reflect": "reflect", "replicate": "replicate"}[mode]
    padding = _torch_padding(ints(pad))
    if mode == "constant":
        return functional.pad(x, padding, value=float(constant_val))
    return functional.pad(x, padding, mode=torch_mode)


def upsample_nearest_neighbor(
    x: Tensor, scale_factor_height: Tensor | float = 1, scale_factor_width: Tensor | float = 1
) -> Tensor:
    factors = float(scale_factor_height), float(scale_factor_width)
    if not all(factor.is_integer() for factor in factors):
        raise Unsupported(f"scale factors {factors}")
    return x.repeat_interleave(int(factors[0]), dim=-2).repeat_interleave(int(factors[1]), dim=-1)


def pixel_shuffle(x: Tensor, upscale_factor: Tensor) -> Tensor:
    return functional.pixel_shuffle(x, int(upscale_factor))


def pixel_unshuffle(x: Tensor, downscale_factor: Tensor) -> Tensor:
    return functional.pixel_unshuffle(x, int(downscale_factor))


def constexpr_blockwise_shift_scale(data: Tensor, scale: Tensor, offset: Tensor | None = None) -> Tensor:
    values = data.float() if offset is None else data.float() - _by_block(offset, data.shape).float()
    return values * _by_block(scale, data.shape)


def constexpr_lut_to_dense(indices: Tensor, lut: Tensor, vector_axis: Tensor | None = None) -> Tensor:
    if vector_axis is not None or lut.shape[-1] != 1 or any(size != 1 for size in lut.shape[:-2]):
        raise Unsupported("a table per block, or of vectors")
    found = torch.index_select(lut.reshape(-1), 0, indices.reshape(-1).int())
    return found.reshape(indices.shape)


def constexpr_cast(source_val: Tensor, output_dtype: str) -> Tensor:
    return cast(source_val, output_dtype)


def _by_block(values: Tensor, shape: Sequence[int]) -> Tensor:
    """Repeat one value a block to one value an element."""
    for axis, (blocks, size) in enumerate(zip(values.shape, shape, strict=True)):
        if size % blocks:
            raise Unsupported(f"{size} values in {blocks} blocks")
        if blocks not in (1, size):
            values = values.repeat_interleave(size // blocks, dim=axis)
    return values.expand(*shape)


def _flags(mask: Tensor | None, count: int) -> list[bool]:
    return [bool(each) for each in mask.tolist()] if mask is not None else [False] * count


def _torch_padding(pairs: list[int]) -> list[int]:
    """Turn (before, after) from the first axis on into torch's order, from the last one back."""
    found: list[int] = []
    for start in range(len(pairs) - 2, -1, -2):
        found += pairs[start : start + 2]
    return found


def _unary(function: Operation) -> Operation:
    """Take the input by MIL's name, which torch's own functions do not."""
    return lambda x: function(x)


_NAMED = (
    *(linear, conv, matmul, scaled_dot_product_attention, layer_norm, batch_norm, softmax, gelu, leaky_relu, rsqrt),
    *(inverse, log, clip, real_div, concat, stack, split, expand_dims, squeeze, reshape, transpose, tile),
    *(slice_by_index, slice_by_size, select, cast, gather, gather_nd, pad, upsample_nearest_neighbor, pixel_shuffle),
    *(pixel_unshuffle, constexpr_blockwise_shift_scale, constexpr_lut_to_dense, constexpr_cast),
)
_UNARY = (
    *(torch.abs, torch.cos, torch.sin, torch.exp, torch.erf, torch.sqrt, torch.square, torch.relu, torch.sigmoid),
    *(torch.tanh, torch.floor, functional.silu),
)
OPERATIONS: dict[str, Operation] = {
    **{function.__name__: function for function in _NAMED},
    **{function.__name__: _unary(function) for function in _UNARY},
    "reduce_mean": _reduction(torch.mean),
    "reduce_sum": _reduction(torch.sum),
    "reduce_max": _reduction(torch.amax),
    "reduce_min": _reduction(torch.amin),
    "identity": lambda x: x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "pow": lambda x, y: torch.pow(x, y),
    "maximum": lambda x, y: torch.maximum(x, y),
    "minimum": lambda x, y: torch.minimum(x, y),
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "logical_not": lambda x: ~x,
}
