"""Functions in several pieces, which run one after the other as if they were one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from profiler.records.bundle import Function, Link
from profiler.runner.engines.engine import EngineFailure, GraphCall


def chained(component: str, function: Function, open_link: Callable[[Link], GraphCall]) -> GraphCall:
    """Open every piece of a function and return what runs them.

    Raises EngineFailure where a piece takes what none before it gave, and what `open_link` raises.
    """
    _check(component, function)
    if not function.chain:
        return open_link(function.links[0])
    calls = [(link, open_link(link)) for link in function.links]

    def call(feeds: Mapping[str, Any]) -> Sequence[Any]:
        values = dict(feeds)
        for link, run in calls:
            found = run({port.name: values[port.name] for port in link.inputs})
            values |= zip((port.name for port in link.outputs), found, strict=True)
        return [values[port.name] for port in function.outputs]

    return call


def _check(component: str, function: Function) -> None:
    known = {port.name: port for port in function.inputs}
    for link in function.links:
        for port in link.inputs:
            _need(component, link.path, port, known)
        known |= {port.name: port for port in link.outputs}
    for port in function.outputs:
        _need(component, function.path, port, known)


def _need(component: str, path: str, port: Any, known: Mapping[str, Any]) -> None:
    if known.get(port.name) != port:
        detail = f"{path}: {port.name} {port.dtype} {list(port.shape)} is what no piece before it gives"
        raise EngineFailure("load_failed", component, detail)
