"""Where weights come from: a pipeline's own safetensors, memory-mapped, or a seed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from accelerate import init_empty_weights
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from exporters.parts import read_json
from profiler.errors import InputError, first_line

_FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_HALVES = (torch.float16, torch.bfloat16)
RANDOM = "random:"


class Weights(Protocol):
    """Opens networks with weights that are not read yet, and reads them one by one."""

    def open(self, folder: Path, cls: Any, options: dict[str, Any]) -> nn.Module:
        """Build a network from its folder's configuration, its buffers in float32. Raises what its library raises."""

    def check(self, module: nn.Module, folder: Path) -> None:
        """Raise InputError for a network whose weights cannot be used."""

    def read(self, weight: nn.Parameter) -> Tensor:
        """Return a weight's values, in any float type."""


class StoredWeights:
    """The safetensors of a pipeline folder, mapped into memory in the type they are stored in."""

    def open(self, folder: Path, cls: Any, options: dict[str, Any]) -> nn.Module:
        """Map a network's weights. Raises ValueError where some are missing."""
        told_below = {"ignore_mismatched_sizes": True} if is_transformers(cls) else {}
        module, told = cls.from_pretrained(
            folder,
            dtype=stored_dtype(folder),
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            **told_below,
            **options,
        )
        wrong = [f"{name} (missing)" for name in sorted(told["missing_keys"])]
        wrong += [f"{name} ({list(has)}, not {list(wanted)})" for name, has, wanted in sorted(told["mismatched_keys"])]
        if wrong:
            raise ValueError(f"the weight files do not fit the configuration: {', '.join(wrong[:3])}")
        _widen_buffers(module, lambda: build_empty(cls, read_json(folder / "config.json"), options))
        return module  # type: ignore[no-any-return]

    def check(self, module: nn.Module, folder: Path) -> None:
        """Refuse weights in a type that is no float of 16 or 32 bits."""
        for name, weight in module.named_parameters():
            if weight.dtype not in _FLOATS.values():
                raise InputError(f"{folder}: weight {name} is {weight.dtype}; float32, float16 and bfloat16 are known")

    def read(self, weight: nn.Parameter) -> Tensor:
        """Return the mapped weight."""
        return weight.detach()


class RandomWeights:
    """Weights drawn from a seed: each from its own stream, named by its network and its own name.

    Matrices keep the size of what passes through them (a normal distribution of variance 1 / fan-in), norms pass it on
    as it is and biases are zero, so that full-size networks stay finite.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._names: dict[int, tuple[str, nn.Module]] = {}
        self._kept: list[nn.Parameter] = []  # so that no id in _names is given to another

    def open(self, folder: Path, cls: Any, options: dict[str, Any]) -> nn.Module:
        """Build a network without memory for its weights."""
        module = build_empty(cls, read_json(folder / "config.json"), options)
        for path, owner in module.named_modules():
            for name, weight in owner._parameters.items():
                if weight is not None and id(weight) not in self._names:
                    self._names[id(weight)] = (f"{folder.name}/{path}.{name}", owner)
                    self._kept.append(weight)
        return module

    def check(self, module: nn.Module, folder: Path) -> None:
        """Find nothing wrong."""

    def read(self, weight: nn.Parameter) -> Tensor:
        """Draw a weight, float32."""
        name, owner = self._names[id(weight)]
        return draw(name, owner, tuple(weight.shape), self.seed)


def weights_of(name: str) -> Weights:
    """Return a source by what a manifest or command line calls it: `random:SEED`, or anything else for stored ones."""
    return RandomWeights(int(name.removeprefix(RANDOM))) if name.startswith(RANDOM) else StoredWeights()


def is_transformers(cls: Any) -> bool:
    """Tell a network's class of transformers from one of diffusers."""
    return getattr(cls, "config_class", None) is not None


def build_empty(cls: Any, config: dict[str, Any], options: dict[str, Any]) -> nn.Module:
    """Build a network of diffusers or transformers whose parameters have a shape, and no memory; buffers are real.

    All are float32, whatever a configuration says that its weights are stored in.
    """
    with init_empty_weights(include_buffers=False):
        if not is_transformers(cls):
            return cls.from_config(config, **options)  # type: ignore[no-any-return]
        built = cls._from_config(cls.config_class.from_dict(config), dtype=torch.float32, **options)
    built.tie_weights()  # what was tied while it was built came apart when its memory was taken away
    return built  # type: ignore[no-any-return]


def _widen_buffers(module: nn.Module, build: Callable[[], nn.Module]) -> None:
    """Turn a network's buffers of 16 bits into float32: those that it computed are computed anew by `build`.

    A runtime need not know bfloat16, and a constant that was rounded to it is not the one of a float32 reference.
    """
    halves = [name for name, buffer in module.named_buffers() if buffer.dtype in _HALVES]
    if not halves:
        return
    stored, computed = module.state_dict(), dict(build().named_buffers())
    for name in halves:
        owner, _, short = name.rpartition(".")
        setattr(module.get_submodule(owner), short, stored.get(name, computed[name]).float())


def draw(name: str, owner: nn.Module, shape: tuple[int, ...], seed: int) -> Tensor:
    """Draw one weight of a module."""
    kind, short = type(owner).__name__, name.rpartition(".")[2]
    if "Norm" in kind:
        # Gemma's norms multiply by one more than their weight.
        one = 0.0 if kind.startswith("Gemma") else 1.0
        return torch.full(shape, one if short == "weight" else 0.0)
    if short == "bias":
        return torch.zeros(shape)
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
    fan_in = 1 if isinstance(owner, nn.Embedding) or len(shape) < 2 else math.prod(shape[1:])
    scale = 0.02 if len(shape) < 2 else 1 / math.sqrt(fan_in)
    return torch.randn(shape, generator=generator).mul_(scale)


def stored_dtype(folder: Path) -> torch.dtype:
    """Return the widest float type in a network's weight files, so that reading them copies nothing.

    Raises InputError for a file that is broken or holds another type.
    """
    found = set()
    for path in sorted(folder.glob("*.safetensors")):
        found |= _dtypes_in(path)
    for kind in ("F32", "BF16", "F16"):
        if kind in found:
            return _FLOATS[kind]
    raise InputError(f"{folder} holds no weights in safetensors")


def _dtypes_in(path: Path) -> set[str]:
    try:
        with safe_open(path, framework="pt") as stream:
            kinds = {name: stream.get_slice(name).get_dtype() for name in stream.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path} is no whole safetensors file: {first_line(error)}", hint="Download it again, or copy it again."
        ) from error
    for name, kind in kinds.items():
        # Whole numbers may be buffers, as positions are; a weight of them is coded in a way that is not known here.
        buffer = kind.startswith(("I", "U", "BOOL")) and not name.endswith((".weight", ".bias"))
        if kind not in _FLOATS and not buffer:
            raise InputError(f"{path}: weight {name} is {kind}; F32, F16 and BF16 are known")
    return set(kinds.values())
