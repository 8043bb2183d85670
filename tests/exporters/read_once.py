"""What torch reads anew for every graph that it exports, read once for all tests of a process.

A small graph costs less than reading what is the same each time: the signatures of its library for ONNX, parsed from
their sources (half a second), and the list of the dispatcher's operators (a tenth). A bundle that is exported in
processes of its own, without this, has the same bytes: see test_children.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch._export import utils as operators
from torch.onnx._internal.exporter._registration import ONNXRegistry


@contextmanager
def read_once() -> Iterator[None]:
    """Export graphs from what was read for the first one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(_copied(ONNXRegistry.from_torchlib)))
        patch.setattr(operators, "_materialize_cpp_cia_ops", _where_changed(operators._materialize_cpp_cia_ops))
        yield


def _copied(read: Callable[..., ONNXRegistry]) -> Callable[..., ONNXRegistry]:
    """Read once for each version; who asks gets a copy, into which the project's own translations are put."""
    known: dict[int, ONNXRegistry] = {}

    def copied(opset_version: int) -> ONNXRegistry:
        if opset_version not in known:
            known[opset_version] = read(opset_version)
        registry = copy.copy(known[opset_version])
        registry.functions = {name: list(found) for name, found in registry.functions.items()}
        return registry

    return copied


def _where_changed(look_up: Callable[[], None]) -> Callable[[], None]:
    """Look every operator up once, and again when an import has added some."""
    known: list[str] = []

    def where_changed() -> None:
        nonlocal known
        now: Any = torch._C._dispatch_get_registrations_for_dispatch_key("CompositeImplicitAutograd")
        if now != known:
            look_up()
            known = now

    return where_changed
