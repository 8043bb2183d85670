"""Layers whose weights are held coded, in forms that an ExecuTorch program keeps coded and runs in float32.

A trace sees a layer decode its whole weight and then use it. Here the decoding is remembered, and what takes its
result gets a form of its own instead:

- An embedding looks up the codes of its rows and decodes those alone.
- A linear layer of eight bits becomes a float32 × int8 product of XNNPACK's own, which never decodes; its activations
  stay float32, since rounding those too moves an encoder's output by over a percent.
- A linear layer of four bits or of halves decodes by plain operations and multiplies by a batched product, which
  XNNPACK takes with a weight that is computed. The weight stands on the left, so that only the other, small side is
  transposed and packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed's operators
from torch import Tensor, nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from exporters.quantize.held import held_in
from exporters.quantize.int8 import LEVELS
from exporters.quantize.nf4 import BLOCK


class Coded(Protocol):
    """What a decoded weight was decoded from."""

    def linear(self, values: Tensor, *, also_rows: bool) -> Tensor:
        """Multiply by the transposed weight, of which rows are looked up elsewhere, or not."""

    def rows(self, numbers: Tensor) -> Tensor:
        """Decode the weight's rows of these numbers."""


class CodedNf4(NamedTuple):
    """A matrix in NF4 whose rows are whole blocks."""

    codes: Tensor
    absmax: Tensor
    pairs: Tensor
    shape: tuple[int, int]

    def linear(self, values: Tensor, *, also_rows: bool) -> Tensor:
        """Multiply by the transposed weight."""
        return _product(self._decoded(self.codes, self.absmax).reshape(self.shape), values)

    def rows(self, numbers: Tensor) -> Tensor:
        """Decode the weight's rows of these numbers."""
        height, width = self.shape
        codes = functional.embedding(numbers, self.codes.reshape(height, width // 2))
        blocks = numbers.reshape(-1, 1) * (width // BLOCK) + torch.arange(width // BLOCK, dtype=numbers.dtype)
        absmax = self.absmax.index_select(0, blocks.reshape(-1))
        return self._decoded(codes, absmax).reshape(*numbers.shape, width)

    def _decoded(self, codes: Tensor, absmax: Tensor) -> Tensor:
        levels = functional.embedding(codes.reshape(-1).int(), self.pairs)
        return levels.reshape(-1, BLOCK) * absmax.float().reshape(-1, 1)


class CodedInt8(NamedTuple):
    """A matrix in eight bits."""

    codes: Tensor
    scales: Tensor

    def linear(self, values: Tensor, *, also_rows: bool) -> Tensor:
        """Multiply by the transposed weight; where rows of it are looked up too, by the codes that those are in."""
        if also_rows:
            return _product(self.codes.float(), values) * self.scales
        zeros = torch.zeros(self.scales.shape, dtype=torch.int64)
        weight = torch.ops.quantized_decomposed.dequantize_per_channel(
            self.codes, self.scales, zeros, 0, -LEVELS, LEVELS, torch.int8
        )
        return functional.linear(values, weight)

    def rows(self, numbers: Tensor) -> Tensor:
        """Decode the weight's rows of these numbers."""
        scales = self.scales.index_select(0, numbers.reshape(-1)).reshape(*numbers.shape, 1)
        return functional.embedding(numbers, self.codes).float() * scales


class CodedHalf(NamedTuple):
    """A matrix of halves."""

    values: Tensor

    def linear(self, values: Tensor, *, also_rows: bool) -> Tensor:
        """Multiply by the transposed weight."""
        return _product(self.values.float(), values)

    def rows(self, numbers: Tensor) -> Tensor:
        """Decode the weight's rows of these numbers."""
        return functional.embedding(numbers, self.values).float()


def _product(weight: Tensor, values: Tensor) -> Tensor:
    """Return values [..., K] × weight [N, K]ᵀ as a batched product of one."""
    columns = values.reshape(1, -1, weight.shape[1]).transpose(1, 2)
    return torch.bmm(weight.reshape(1, *weight.shape), columns).transpose(1, 2).reshape(*values.shape[:-1], -1)


class CodedForms(TorchFunctionMode):
    """While it is active, layers of a network, in this thread, that decode their weights take the forms above."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._also_rows = _shapes_with_rows(network)
        # By the decoded tensor's identity, which lasts as long as it is kept here.
        self._decoded: dict[int, tuple[Tensor, Coded]] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the form in the place of the function."""
        kwargs = kwargs or {}
        if func in _CODED:
            return self._remember(func(*args, **kwargs), _CODED[func](*args, **kwargs))
        if func is functional.linear and (coded := self._coded(*args, **kwargs)):
            return self._linear(coded, *args, **kwargs)
        if func is functional.embedding and (coded := self._coded(*args, **kwargs)):
            return _embedding(coded, *args, **kwargs)
        return func(*args, **kwargs)

    def _remember(self, decoded: Tensor, coded: Coded) -> Tensor:
        self._decoded[id(decoded)] = decoded, coded
        return decoded

    def _coded(self, input: Tensor, weight: Tensor, *_: Any, **__: Any) -> Coded | None:  # noqa: A002 - torch's name
        found = self._decoded.get(id(weight))
        return found[1] if found else None

    def _linear(self, coded: Coded, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002
        found = coded.linear(input, also_rows=tuple(weight.shape) in self._also_rows)
        return found if bias is None else found + bias


def _shapes_with_rows(network: nn.Module) -> set[tuple[int, ...]]:
    """Return the shapes of embeddings' coded weights: XNNPACK keeps what it multiplies by to itself, so that a weight
    which a linear layer shares with an embedding would be stored twice."""
    embeddings = (module for module in network.modules() if isinstance(module, nn.Embedding))
    return {held.shape for held in held_in(embeddings)}


def _embedding(coded: Coded, input: Tensor, weight: Tensor, *_: Any, **__: Any) -> Tensor:  # noqa: A002
    return coded.rows(input)


# As a layer calls them.
_CODED: dict[Any, Callable[..., Coded]] = {
    torch.ops.profiler.nf4_decode: lambda codes, absmax, pairs, shape: CodedNf4(codes, absmax, pairs, tuple(shape)),
    torch.ops.profiler.int8_decode: CodedInt8,
    torch.ops.profiler.half_decode: CodedHalf,
}
