"""PyTorch calls that ExecuTorch gets wrong or splits a graph at, written in a form that it does not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_HALVES = (torch.float16, torch.bfloat16)


class ExecutorchForms(TorchFunctionMode):
    """While it is active, calls in this thread take the forms below; nothing is patched, so nothing has to be undone.

    `attention=False` leaves attention as it is: for comparing only.
    """

    def __init__(self, *, attention: bool = True) -> None:
        super().__init__()
        self._forms = {**_NORMS, functional.scaled_dot_product_attention: plain_attention} if attention else _NORMS

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the form in the place of the function."""
        form: Callable[..., Any] = self._forms.get(func, func)
        return form(*args, **(kwargs or {}))


def plain_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attend by two batched products over [batch × heads, length, width].

    PyTorch's own decomposition has an `any` for rows that are masked as a whole, which no delegate takes: it splits
    each attention in three. Such a row comes out as a mean here and as zeros there.
    """
    if enable_gqa:
        key, value = (each.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3) for each in (key, value))
    *batch, length, width = query.shape
    scores = torch.bmm(_rows(query) * (1 / math.sqrt(width) if scale is None else scale), _rows(key).transpose(1, 2))
    mask = _causal(length, key.shape[-2], query) if is_causal else attn_mask
    if mask is not None:
        scores = _rows(scores.reshape(*batch, length, -1) + _additive(mask, query.dtype))
    weights = torch.softmax(scores, dim=-1)
    return torch.bmm(weights, _rows(value)).reshape(*batch, length, -1)


def _rows(values: Tensor) -> Tensor:
    return values.reshape(-1, *values.shape[-2:])


def _causal(length: int, seen: int, like: Tensor) -> Tensor:
    return torch.ones(length, seen, dtype=torch.bool, device=like.device).tril()


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask of booleans into what is added; finite, so that no row becomes undefined."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, torch.finfo(dtype).min)


def _in_float32(norm: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Compute a norm of halves in float32: ExecuTorch 1.5.1's fp16 LayerNorm is silently wrong at real widths."""

    def call(values: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if values.dtype not in _HALVES:
            return norm(values, *args, **kwargs)
        found = norm(values.float(), *map(_full, args), **{name: _full(each) for name, each in kwargs.items()})
        return found.to(values.dtype)

    return call


def _full(argument: Any) -> Any:
    return argument.float() if isinstance(argument, Tensor) else argument


_NORMS: dict[Callable[..., Any], Callable[..., Any]] = {
    norm: _in_float32(norm)
    for norm in (
        functional.layer_norm,
        functional.group_norm,
        functional.rms_norm,
        torch.layer_norm,
        torch.group_norm,
        torch.rms_norm,
    )
}
