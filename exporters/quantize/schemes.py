"""Applying a scheme to a network: which weights are coded, which stay, and what that is in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn

from exporters.quantize import int8, nf4
from exporters.quantize.held import Held, HeldHalf, HeldInt8, HeldNf4, count_weights, hold, release, source_in
from profiler.errors import InputError, ModelError
from profiler.records.recipe import EncoderScheme, Precision

_LAYERS = (nn.Linear, nn.Embedding)


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How weights are stored: the scheme, the names that are kept, and how precise those and all others are."""

    name: EncoderScheme
    kept: tuple[str, ...] = ()
    rest: Precision = "fp32"
    absmax_dtype: torch.dtype = torch.float32


@dataclass(frozen=True, kw_only=True)
class Applied:
    """What was done to a network.

    `coded` are the weights by name; `kept` and `fallen_back` (NF4 cannot hold their rows in whole blocks, so they are
    int8) name weights; `tied` maps a weight's further names to its first, under which it is stored. `weights` counts
    all weights of the network, `saved_bytes` what storing tied ones again would take.
    """

    scheme: Scheme
    coded: dict[str, Held]
    kept: tuple[str, ...]
    fallen_back: tuple[str, ...]
    tied: dict[str, str]
    weights: int

    @property
    def coverage(self) -> float:
        """Return the share of weights that are stored in fewer bits than the rest, by the scheme."""
        return sum(self.coded[name].count for name in self.coded if name not in self.kept) / max(1, self.weights)

    @property
    def ideal_bytes(self) -> int:
        """Return the bytes of all weights: codes and scales, and float32 where nothing is coded."""
        plain = self.weights - sum(held.count for held in self.coded.values())
        return 4 * plain + sum(held.size_bytes for held in self.coded.values())

    @property
    def saved_bytes(self) -> int:
        """Return the bytes that tied weights would take if they were stored under each name."""
        return sum(self.coded[first].size_bytes for first in self.tied.values() if first in self.coded)


@dataclass
class _Group:
    """The layers that share one weight, which `read` gives."""

    read: Callable[[], Tensor]
    layers: list[nn.Module] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def apply(modules: Sequence[nn.Module], scheme: Scheme) -> Applied:
    """Code the weights of all linear layers and embeddings in place, one after the other; norms and biases stay.

    Afterwards the modules compute in float32 with exactly the weights that the codes stand for. Raises ModelError for
    undefined weights, which are named.
    """
    total = count_weights(modules)
    groups = _groups(modules)
    kept = _kept(groups, scheme)
    _check_finite(modules)
    coded: dict[str, Held] = {}
    tied: dict[str, str] = {}
    while groups:
        group = groups.pop(0)  # so that its source goes before the next is coded
        first, *others = group.names
        tied |= dict.fromkeys(others, first)
        held = _code_group(group, scheme.rest if first in kept else scheme.name, scheme)
        if held is not None:
            coded[first] = held
    return Applied(
        scheme=scheme,
        coded=coded,
        kept=tuple(kept),
        fallen_back=tuple(
            name
            for name, held in coded.items()
            if scheme.name == "nf4" and isinstance(held, HeldInt8) and name not in kept
        ),
        tied=tied,
        weights=total,
    )


def _code_group(group: _Group, name: EncoderScheme, scheme: Scheme) -> Held | None:
    held = _code(group.names[0], group.read, name, scheme)
    for layer in group.layers:
        if held is not None:
            hold(layer, held)
        elif source_in(layer) is not None:
            release(layer, nn.Parameter(group.read().float(), requires_grad=False))
    return held


def _groups(modules: Sequence[nn.Module]) -> list[_Group]:
    """Return the weights of linear layers and embeddings, with all layers and names each has."""
    groups: dict[tuple[object, ...], _Group] = {}
    seen: set[int] = set()
    for module in modules:
        for name, layer in module.named_modules():
            if not isinstance(layer, _LAYERS) or id(layer) in seen or (found := _stored(layer)) is None:
                continue
            seen.add(id(layer))
            key, read = found
            group = groups.setdefault(key, _Group(read))
            group.layers.append(layer)
            group.names.append(f"{name}.weight" if name else "weight")
    return list(groups.values())


def _stored(layer: nn.Module) -> tuple[tuple[object, ...], Callable[[], Tensor]] | None:
    """Return what tells a layer's weight from others, and how to read it; None where it has none or is coded."""
    source = source_in(layer)
    if source is not None:
        return (id(source),), source.read
    weight = layer._parameters.get("weight")
    if weight is None:
        return None
    detached = weight.detach()
    key = (weight.data_ptr(), weight.shape, weight.stride()) if weight.numel() else (id(weight),)
    return key, lambda: detached


def matches(name: str, pattern: str) -> bool:
    """Tell whether a pattern means a parameter; it may leave out the name's first parts."""
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"*.{pattern}")


def check_kept(modules: Sequence[nn.Module], patterns: Sequence[str]) -> None:
    """Raise InputError for a pattern that matches no weight which could be coded."""
    names = [name for group in _groups(modules) for name in group.names]
    for pattern in patterns:
        if not any(matches(name, pattern) for name in names):
            raise InputError(
                f"no weight that can be quantized matches {pattern!r}",
                hint=f"There are {len(names)}, such as {', '.join(names[:3])}." if names else None,
            )


def _kept(groups: Sequence[_Group], scheme: Scheme) -> list[str]:
    """Return the first names of the weights that a pattern means by any name."""
    return [
        group.names[0]
        for group in groups
        if any(matches(name, pattern) for name in group.names for pattern in scheme.kept)
    ]


def _code(name: str, read: Callable[[], Tensor], scheme: EncoderScheme, asked: Scheme) -> Held | None:
    """Code one weight, or return None where it stays in float32."""
    if scheme == "fp32":
        return None
    weight = read()
    try:
        if scheme == "fp16":
            return HeldHalf(_half(weight))
        if scheme == "nf4" and weight.shape[1] % nf4.BLOCK == 0:
            return HeldNf4(nf4.encode(weight, asked.absmax_dtype))
        return HeldInt8(int8.encode(weight))
    except ValueError as error:
        raise ModelError(f"{name} cannot be stored as {scheme}: {error}") from error


def _half(weight: Tensor) -> Tensor:
    values = weight.half()
    if not torch.isfinite(values).all():
        raise ValueError(f"weights are beyond ±{torch.finfo(torch.float16).max:g}")
    return values


def _check_finite(modules: Sequence[nn.Module]) -> None:
    for module in modules:
        for name, weight in module.named_parameters():
            # The largest and smallest are undefined where any is, and take no memory of the tensor's size.
            if weight.numel() and not all(torch.isfinite(limit) for limit in torch.aminmax(weight.detach())):
                raise ModelError(f"weight {name} holds NaN or infinity")
