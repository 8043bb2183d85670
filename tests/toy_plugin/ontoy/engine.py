"""An engine: runs what torch.export saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from profiler.bundle_files import inside
from profiler.records.bundle import Component, Function
from profiler.runner.engines.engine import EngineFailure, GraphCall


class ToyEngine:
    """Runs programs in PyTorch."""

    name = "toy"
    version = "1.2"

    def __init__(self, *, threads: int | None = None) -> None:
        if threads is not None:
            torch.set_num_threads(threads)

    def load(self, name: str, component: Component, folder: Path) -> dict[str, GraphCall]:
        """Open every function."""
        return {
            key: _open(name, function, inside(folder, function.path)) for key, function in component.functions.items()
        }


def _open(name: str, function: Function, path: Path) -> GraphCall:
    try:
        program = torch.export.load(path).module()
    except Exception as error:
        raise EngineFailure("load_failed", name, str(error)) from error

    def call(feeds: Mapping[str, Any]) -> Sequence[Any]:
        with torch.no_grad():
            found = program(*(torch.from_numpy(np.array(feeds[port.name])) for port in function.inputs))
        return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]

    return call
