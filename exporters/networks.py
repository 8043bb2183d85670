"""A pipeline folder's networks and settings, opened one by one; weights are read only for the part that needs them."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import diffusers
import torch
import transformers
from torch import nn

from exporters.parts import read_json
from exporters.quantize.held import HeldSource, hold
from exporters.quiet import quiet
from exporters.weights import RandomWeights, StoredWeights, Weights
from profiler.errors import InputError, ModelError, first_line

INDEX = "model_index.json"
_LIBRARIES = ("diffusers", "transformers")
_DEFERRED = (nn.Linear, nn.Embedding)
# What these libraries raise for a folder that is broken or for another architecture.
LOAD_ERRORS = (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, ImportError)


class Networks:
    """The networks of one pipeline folder: float32 on the CPU once filled, without gradients."""

    def __init__(self, folder: Path, weights: Weights | None = None) -> None:
        self.folder = folder
        self.weights = weights or StoredWeights()
        self._modules: dict[str, nn.Module] = {}
        self._filled: dict[int, nn.Parameter] = {}
        self._names: dict[int, str] = {}

    @property
    def random(self) -> bool:
        """Tell whether weights are drawn from a seed."""
        return isinstance(self.weights, RandomWeights)

    @cached_property
    def index(self) -> dict[str, Any]:
        """Return the folder's index. Raises InputError where it has none."""
        path = self.folder / INDEX
        if not path.is_file():
            raise InputError(f"{self.folder} is not a diffusers pipeline ({INDEX} is not there)")
        return read_json(path)

    @property
    def pipeline(self) -> str:
        """Return the pipeline's class name."""
        return str(self.index.get("_class_name"))

    def check_pipeline(self, *known: str) -> str:
        """Return the pipeline's class name. Raises InputError for one that is not `known`."""
        if self.pipeline not in known:
            supported = " and ".join([", ".join(known[:-1]), known[-1]] if len(known) > 1 else known)
            raise InputError(f"{self.folder} holds a {self.pipeline}; supported are {supported}")
        return self.pipeline

    def module(self, part: str, **options: Any) -> nn.Module:
        """Open a network, its weights where they are stored or absent; always the same one. Raises InputError."""
        if part not in self._modules:
            cls = self._class_of(part)
            with self._loading(cls, part):
                if not (self.folder / part / "config.json").is_file():
                    raise FileNotFoundError("no config.json there")
                module = self.weights.open(self.folder / part, cls, options)
            self.weights.check(module, self.folder / part)
            self._names |= {id(weight): name for name, weight in module.named_parameters(prefix=part)}
            self._modules[part] = module.eval().requires_grad_(False)
        return self._modules[part]

    def setting(self, part: str) -> Any:
        """Open a tokenizer, processor or scheduler. Raises InputError."""
        cls = self._class_of(part)
        with self._loading(cls, part):
            if not (self.folder / part).is_dir():  # a library would take it for a hub id
                raise FileNotFoundError("no such folder")
            return cls.from_pretrained(self.folder / part, local_files_only=True, trust_remote_code=False)

    def fill(self, *modules: nn.Module) -> None:
        """Read the weights of (parts of) networks, as float32. Raises ModelError for NaN and infinity."""
        for module in modules:
            for owner in module.modules():
                for name, weight in list(owner._parameters.items()):
                    if weight is not None:
                        owner._parameters[name] = self._read(weight)

    def defer(self, *modules: nn.Module) -> None:
        """Read the weights of norms and the like; linear layers and embeddings read theirs each time they run."""
        sources: dict[int, HeldSource] = {}
        for layer in (layer for module in modules for layer in module.modules()):
            weight = layer._parameters.get("weight")
            if isinstance(layer, _DEFERRED) and weight is not None:
                source = sources.setdefault(id(weight), self._source(weight))
                hold(layer, source)
        self.fill(*modules)

    def _source(self, weight: nn.Parameter) -> HeldSource:
        return HeldSource(lambda: self._values(weight), tuple(weight.shape))

    def _read(self, weight: nn.Parameter) -> nn.Parameter:
        """Return a weight as float32; one that several layers share stays one."""
        if id(weight) not in self._filled:
            values = self._values(weight)
            if weight.dtype == torch.float32 and not weight.is_meta:
                filled = weight
            else:
                filled = nn.Parameter(values.float(), requires_grad=False)
                filled.read_from = weight  # type: ignore[attr-defined]  # keeps the key's id from being given anew
            self._filled[id(weight)] = filled
        return self._filled[id(weight)]

    def _values(self, weight: nn.Parameter) -> torch.Tensor:
        """Return a weight's values as they are stored or drawn. Raises ModelError for undefined ones."""
        values = self.weights.read(weight) if id(weight) in self._names else weight.detach()
        # The largest and smallest are undefined where any is, and take no memory of the weight's size.
        if values.numel() and not all(torch.isfinite(limit) for limit in torch.aminmax(values)):
            raise ModelError(
                f"{self.folder}: weight {self._names.get(id(weight), 'of a layer')} holds NaN or infinity",
                hint="No bundle of it would make an image; take the model's weights from their source again.",
            )
        return values

    def _class_of(self, part: str) -> Any:
        entry = self.index.get(part)
        library, name = entry if isinstance(entry, list) and len(entry) == 2 else (None, None)
        if library not in _LIBRARIES:
            raise InputError(
                f"{self.folder / INDEX}: {part} comes from {library!r}; remote or missing code is never loaded"
            )
        with quiet():  # the libraries import what a class needs when it is asked for
            found = getattr(importlib.import_module(str(library)), str(name), None)
        if found is None:
            raise InputError(f"{self.folder / INDEX}: {library} has no {name}, which {part} is to be")
        return found

    @contextlib.contextmanager
    def _loading(self, cls: Any, part: str) -> Iterator[None]:
        try:
            with quiet(), _no_progress_bars():
                yield
        except LOAD_ERRORS as error:
            name = getattr(cls, "__name__", cls)
            raise InputError(f"cannot load the {name} in {self.folder / part}: {first_line(error)}") from error


@contextlib.contextmanager
def _no_progress_bars() -> Iterator[None]:
    both: tuple[Any, ...] = (diffusers.utils.logging, transformers.utils.logging)
    for logging in both:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        for logging in both:
            logging.enable_progress_bar()
