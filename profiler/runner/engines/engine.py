"""What an inference runtime must do for a runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from profiler.records.bundle import Component

Tensor = npt.NDArray[np.float32] | npt.NDArray[np.int32]
# Takes input ports by name, returns the outputs in the order the manifest lists them.
GraphCall = Callable[[Mapping[str, Any]], Sequence[Any]]


class EngineFailure(Exception):
    """The runtime could not load or run a component; `reason` is a word of the protocol."""

    def __init__(self, reason: str, component: str, detail: str) -> None:
        super().__init__(f"{component}: {detail}")
        self.reason = reason
        self.component = component


class Engine(Protocol):
    """Loads components; a loaded function is called with float32 and int32 arrays only."""

    @property
    def name(self) -> str:
        """Return the runtime's name."""

    @property
    def version(self) -> str:
        """Return the runtime's version."""

    def load(self, name: str, component: Component, folder: Path) -> dict[str, GraphCall]:
        """Make every function of a component ready. Raises EngineFailure."""
