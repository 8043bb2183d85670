"""An engine whose calls take as long as they are told, on a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from profiler.clock import FakeClock
from profiler.records.bundle import Component, Function
from profiler.runner.engines.engine import EngineFailure, GraphCall

Answer = Callable[[Mapping[str, Any]], Sequence[Any]]


class FakeEngine:
    """Notes what it is asked; answers zeros unless `answers` has another answer for a component."""

    name = "fake"
    version = "1"

    def __init__(
        self,
        clock: FakeClock,
        costs_ns: Mapping[str, int] | None = None,
        answers: Mapping[str, Answer] | None = None,
        broken: Mapping[str, str] | None = None,
    ) -> None:
        self._clock = clock
        self._costs_ns = costs_ns or {}
        self._answers = answers or {}
        self._broken = broken or {}
        self.asked: list[str] = []

    def load(self, name: str, component: Component, folder: Path) -> dict[str, GraphCall]:
        """Take the load's time, or fail."""
        self.asked.append(f"load {name}")
        self._clock.advance(self._costs_ns.get(f"load {name}", 0))
        if name in self._broken:
            raise EngineFailure(self._broken[name], name, "as the test wants it")
        return {key: self._graph(name, function) for key, function in component.functions.items()}

    def _graph(self, name: str, function: Function) -> GraphCall:
        def zeros(feeds: Mapping[str, Any]) -> list[Any]:
            return [np.zeros(port.shape, port.dtype) for port in function.outputs]

        def call(feeds: Mapping[str, Any]) -> Sequence[Any]:
            self.asked.append(name)
            self._clock.advance(self._costs_ns.get(name, 0))
            return self._answers.get(name, zeros)(feeds)

        return call
