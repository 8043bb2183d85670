"""Networks that hold their weights coded and decode one at a time, while its layer runs.

Each decoding is one operator (`profiler::nf4_decode` and so on), which a trace keeps as one node: a runtime either
recognises what the node feeds and uses its own operator, or replaces it by plain operations (DECOMPOSITIONS).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from exporters.quantize import int8, nf4
from exporters.quantize.int8 import Int8
from exporters.quantize.nf4 import Nf4

_SUBMODULE = "held_weight"
_PAIRS = nf4.pair_book()


@torch.library.custom_op("profiler::nf4_decode", mutates_args=())
def nf4_decode(codes: Tensor, absmax: Tensor, pairs: Tensor, shape: Sequence[int]) -> Tensor:
    """Decode NF4 weights, float32."""
    return nf4.decode_parts(codes, absmax, pairs, shape)


@torch.library.custom_op("profiler::int8_decode", mutates_args=())
def int8_decode(codes: Tensor, scales: Tensor) -> Tensor:
    """Decode weights of eight bits, float32."""
    return int8.decode_parts(codes, scales)


@torch.library.custom_op("profiler::half_decode", mutates_args=())
def half_decode(values: Tensor) -> Tensor:
    """Widen weights of half precision, float32."""
    return values.float()


@nf4_decode.register_fake
def _(codes: Tensor, absmax: Tensor, pairs: Tensor, shape: Sequence[int]) -> Tensor:
    return codes.new_empty(shape, dtype=torch.float32)


@int8_decode.register_fake
def _(codes: Tensor, scales: Tensor) -> Tensor:
    return torch.empty_like(codes, dtype=torch.float32)


@half_decode.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values, dtype=torch.float32)


# As they stand in a trace.
NF4_DECODE = torch.ops.profiler.nf4_decode.default
INT8_DECODE = torch.ops.profiler.int8_decode.default
HALF_DECODE = torch.ops.profiler.half_decode.default
# Operator → plain operations, for ExportedProgram.run_decompositions.
DECOMPOSITIONS: dict[Any, Callable[..., Tensor]] = {
    NF4_DECODE: nf4.decode_parts,
    INT8_DECODE: int8.decode_parts,
    HALF_DECODE: Tensor.float,
}


class Held(nn.Module):
    """One coded weight; calling it decodes to float32 `shape`."""

    shape: tuple[int, ...]
    size_bytes: int  # of codes and scales

    @property
    def count(self) -> int:
        """Count the weights."""
        return prod(self.shape)


class HeldNf4(Held):
    """A weight in NF4; buffers `codes`, `absmax`, and the pair book, which all of them share."""

    codes: Tensor
    absmax: Tensor
    pairs: Tensor

    def __init__(self, coded: Nf4) -> None:
        super().__init__()
        self.shape, self.size_bytes = coded.shape, coded.size_bytes
        self.register_buffer("codes", coded.codes)
        self.register_buffer("absmax", coded.absmax)
        self.register_buffer("pairs", _PAIRS, persistent=False)

    def forward(self) -> Tensor:
        """Decode."""
        decoded: Tensor = torch.ops.profiler.nf4_decode(self.codes, self.absmax, self.pairs, list(self.shape))
        return decoded


class HeldInt8(Held):
    """A weight in eight bits; buffers `codes` and `scales`."""

    codes: Tensor
    scales: Tensor

    def __init__(self, coded: Int8) -> None:
        super().__init__()
        self.shape, self.size_bytes = coded.shape, coded.size_bytes
        self.register_buffer("codes", coded.codes)
        self.register_buffer("scales", coded.scales)

    def forward(self) -> Tensor:
        """Decode."""
        decoded: Tensor = torch.ops.profiler.int8_decode(self.codes, self.scales)
        return decoded


class HeldHalf(Held):
    """A weight in half precision; buffer `values`."""

    values: Tensor

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.shape, self.size_bytes = tuple(values.shape), values.nbytes
        self.register_buffer("values", values)

    def forward(self) -> Tensor:
        """Widen."""
        decoded: Tensor = torch.ops.profiler.half_decode(self.values)
        return decoded


class HeldSource(Held):
    """A weight that is read anew from where it is stored each time, before it is coded."""

    size_bytes = 0

    def __init__(self, read: Callable[[], Tensor], shape: tuple[int, ...]) -> None:
        super().__init__()
        self.read, self.shape = read, shape

    def forward(self) -> Tensor:
        """Read."""
        return self.read().float()


def hold(layer: nn.Module, held: Held) -> None:
    """Replace a layer's `weight` by a coded one; the layer's own code goes on reading `weight`."""
    if source_in(layer) is not None:
        layer.add_module(_SUBMODULE, held)
        return
    del layer._parameters["weight"]
    layer.add_module(_SUBMODULE, held)
    cls = type(layer)
    decoding = property(lambda self: getattr(self, _SUBMODULE)())
    layer.__class__ = type(f"Quantized{cls.__name__}", (cls,), {"weight": decoding})


def release(layer: nn.Module, weight: nn.Parameter) -> None:
    """Give a layer a plain weight again."""
    layer.__class__ = type(layer).__mro__[1]
    del layer._modules[_SUBMODULE]
    layer.register_parameter("weight", weight)


def source_in(layer: nn.Module) -> HeldSource | None:
    """Return what a layer reads its weight from, where that is not coded yet."""
    held = layer._modules.get(_SUBMODULE)
    return held if isinstance(held, HeldSource) else None


def held_in(modules: Iterable[nn.Module]) -> Iterator[Held]:
    """Yield the coded weights of networks, each once."""
    found = {id(module): module for each in modules for module in each.modules() if isinstance(module, Held)}
    yield from found.values()


def count_weights(modules: Iterable[nn.Module]) -> int:
    """Count weights, coded ones too, and those that several layers or networks share once."""
    modules = list(modules)
    plain = {id(weight): weight.numel() for module in modules for weight in module.parameters()}
    return sum(plain.values()) + sum(held.count for held in held_in(modules))
