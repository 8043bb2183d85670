"""The registry's network configurations: read, built without weights, and written out as a pipeline folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import diffusers
import transformers
from torch import nn

from exporters.parts import read_json
from exporters.quiet import quiet
from exporters.weights import build_empty
from profiler import codec
from profiler.errors import InputError
from profiler.records.record import Record
from profiler.records.spec import ModelSpec

ARCHITECTURES = Path(__file__).parent / "models" / "architectures"
SCHEDULERS = Path(__file__).parent / "models" / "schedulers"


class Origin(Record):
    """Where an architecture's or a scheduler's settings are from; `stored` is the published weights' type."""

    status: Literal["seen", "stated", "inferred"]
    source: str
    stored: str = "float32"


class Origins(Record):
    """Every origin, by name (`exporters/models/architectures/sources.toml` explains the statuses)."""

    architectures: dict[str, Origin]
    schedulers: dict[str, Origin]


def origins() -> Origins:
    """Read where the registered settings come from."""
    return codec.read_toml(ARCHITECTURES / "sources.toml", Origins)


def architectures() -> list[str]:
    """Name the registered architectures."""
    return sorted(path.parent.name for path in ARCHITECTURES.glob("*/config.json"))


def schedulers() -> list[str]:
    """Name the registered schedulers."""
    return sorted(path.stem for path in SCHEDULERS.glob("*.json"))


def config_of(name: str) -> dict[str, Any]:
    """Read the configuration of a registered architecture. Raises InputError for an unknown name."""
    return read_json(ARCHITECTURES / _known("architecture", name, architectures()) / "config.json")


def scheduler_of(name: str) -> dict[str, Any]:
    """Read a registered scheduler's settings. Raises InputError for an unknown name."""
    return read_json(SCHEDULERS / f"{_known('scheduler', name, schedulers())}.json")


def build_on_meta(config: dict[str, Any]) -> nn.Module:
    """Build the network of a diffusers or transformers configuration in evaluation mode, without allocating weights.

    Parameters are on the meta device, tied where the class ties them; buffers are real, as no checkpoint holds some.
    Raises InputError for a class of neither library: code from elsewhere is never loaded.
    """
    with quiet():
        network = build_empty(_class_of(config), config, {})
    return network.eval().requires_grad_(False)


def write_configs(spec: ModelSpec, folder: Path) -> None:
    """Write a pipeline folder of a registry entry that holds settings only, as `from_pretrained` lays them out.

    Written are model_index.json, a config.json for each network, and the scheduler's; neither weights nor tokenizers.
    Raises InputError for an entry that does not describe its pipeline.
    """
    if spec.pipeline is None or spec.scheduler is None or not spec.parts:
        raise InputError(f"{spec.name}: the registry does not describe this model's networks")
    configs = {name: config_of(part.architecture) for name, part in spec.parts.items()}
    scheduler = scheduler_of(spec.scheduler)
    _write(folder / "model_index.json", _index(spec, configs, scheduler))
    _write(folder / "scheduler" / "scheduler_config.json", scheduler)
    for name, config in configs.items():
        _write(folder / name / "config.json", config)


def _known(kind: str, name: str, known: list[str]) -> str:
    if name not in known:
        raise InputError(f"no {kind} is called {name!r}; registered are {', '.join(known)}")
    return name


def _index(spec: ModelSpec, configs: dict[str, dict[str, Any]], scheduler: dict[str, Any]) -> dict[str, Any]:
    tokenizers = {name: ["transformers", kind] for name, kind in spec.tokenizers.items()}
    networks = {name: list(_library_and_class(config)) for name, config in configs.items()}
    return {
        "_class_name": spec.pipeline,
        "_diffusers_version": diffusers.__version__,
        "scheduler": ["diffusers", scheduler["_class_name"]],
        **tokenizers,
        **networks,
    }


def _library_and_class(config: dict[str, Any]) -> tuple[str, str]:
    if "_class_name" in config:
        return "diffusers", str(config["_class_name"])
    names = config.get("architectures") or ["nothing"]
    return "transformers", str(names[0])


def _class_of(config: dict[str, Any]) -> Any:
    library, name = _library_and_class(config)
    found = getattr(diffusers if library == "diffusers" else transformers, name, None)
    if not (isinstance(found, type) and issubclass(found, nn.Module)):
        raise InputError(f"{library} has no network called {name}; code from elsewhere is never loaded")
    return found


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", encoding="utf-8")
