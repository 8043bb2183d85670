"""Functions in several pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from profiler.records.bundle import Function, Link
from profiler.records.plan import Port
from profiler.runner.engines.chain import chained
from profiler.runner.engines.engine import EngineFailure, GraphCall


def port(name: str, *shape: int) -> Port:
    return Port(name=name, dtype="float32", shape=shape)


def link(path: str, takes: Sequence[str], gives: Sequence[str]) -> Link:
    return Link(path=path, inputs=tuple(map(port, takes)), outputs=tuple(map(port, gives)))


def open_link(piece: Link) -> GraphCall:
    """Return a call that says what it was given."""

    def call(feeds: Mapping[str, Any]) -> Sequence[Any]:
        told = f"{piece.path}({', '.join(feeds[name.name] for name in piece.inputs)})"
        assert set(feeds) == {name.name for name in piece.inputs}
        return [f"{told}.{name.name}" for name in piece.outputs]

    return call


def test_pieces_take_the_inputs_and_what_any_earlier_piece_gave() -> None:
    chain = (link("a", ["x"], ["skip", "u"]), link("b", ["u", "t"], ["v"]), link("c", ["v", "skip"], ["y"]))
    function = Function(path="a", inputs=(port("x"), port("t")), outputs=(port("y"), port("u")), chain=chain)
    found = chained("denoiser", function, open_link)({"x": "1", "t": "2"})
    assert found == ["c(b(a(1).u, 2).v, a(1).skip).y", "a(1).u"]


def test_a_whole_function_is_called_as_it_is() -> None:
    function = Function(path="a", inputs=(port("x"),), outputs=(port("y"),))
    assert chained("denoiser", function, open_link)({"x": "1"}) == ["a(1).y"]


@pytest.mark.parametrize(
    ("chain", "path"),
    [
        ((link("a", ["u"], ["v"]), link("b", ["v"], ["u", "y"])), "a"),  # given only afterwards
        ((link("a", ["x"], ["u"]), link("b", ["u"], ["z"])), "a"),  # no piece gives the function's output
        ((link("a", ["x"], ["u"]), Link(path="b", inputs=(port("u", 2),), outputs=(port("y"),))), "b"),
    ],
)
def test_a_chain_that_does_not_hold_together_is_refused_before_anything_is_opened(
    chain: tuple[Link, ...], path: str
) -> None:
    function = Function(path="a", inputs=(port("x"),), outputs=(port("y"),), chain=chain)
    opened: list[Link] = []
    with pytest.raises(EngineFailure, match=f"denoiser: {path}: . float32 .* is what no piece before it gives"):
        chained("denoiser", function, lambda piece: opened.append(piece) or open_link(piece))  # type: ignore[func-returns-value]
    assert not opened
