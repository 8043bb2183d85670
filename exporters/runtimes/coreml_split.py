"""Cuts a graph into as few pieces as keep their weights below a limit, where the fewest bytes cross.

What crosses is carried as float32 or int32, as at any boundary. A weight that two pieces need is in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import torch
from torch import Tensor, fx

from exporters.parts import Graph

# A package holds a little more than its weights: the program, and alignment.
_FILLED = 0.98


class CannotSplit(Exception):
    """No cut leaves pieces that are small enough."""


def split(graph: Graph, limit_bytes: int, *, halves: bool) -> list[Graph]:
    """Cut a graph into as few graphs as hold their weights within a limit; `halves` says that floats take two bytes.

    Their inputs are the graph's own and the outputs of earlier ones, by name; what is only handed on is called
    `between_N`. Returns the graph itself where it is small enough. Raises CannotSplit.
    """
    limit = limit_bytes * _FILLED
    if _bytes_of(graph.module, halves) <= limit:
        return [graph]
    try:
        program = torch.export.export(graph.module, tuple(graph.inputs.values()), strict=False)
    except Exception as error:  # whatever the model's own code raises, which its conversion will raise again
        raise CannotSplit("it cannot be traced") from error
    traced = _Traced(graph, program.module(check_guards=False), halves)
    cuts = traced.cuts(limit)
    return [traced.piece(start, end) for start, end in zip([0, *cuts], [*cuts, len(traced.steps)], strict=True)]


def weight_bytes(tensor: Tensor, halves: bool) -> int:
    """Return the bytes that a weight or a code takes in a package."""
    return tensor.numel() * (2 if halves and tensor.is_floating_point() else tensor.element_size())


def _bytes_of(module: torch.nn.Module, halves: bool) -> int:
    tensors = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    return sum(weight_bytes(tensor, halves) for tensor in tensors.values())


# Where a piece begins → the bytes that cross before it, and the cuts.
_Routes = dict[int, tuple[float, tuple[int, ...]]]


class _Traced:
    """A graph as it was traced: its steps in order, and the weights that they take."""

    def __init__(self, graph: Graph, module: fx.GraphModule, halves: bool) -> None:
        self._graph, self._module = graph, module
        nodes = list(module.graph.nodes)
        self.steps = [node for node in nodes if node.op not in ("placeholder", "get_attr", "output")]
        self._at = {node: place for place, node in enumerate(self.steps)}
        self._sizes = {node: weight_bytes(_attribute(module, node), halves) for node in nodes if node.op == "get_attr"}
        inputs = [node for node in nodes if node.op == "placeholder"]
        results = next(node for node in nodes if node.op == "output").args[0]
        self._names: dict[fx.Node, str] = dict(zip(inputs, graph.inputs, strict=True))
        self._examples = dict(graph.inputs)
        self._results = set(results)
        if len(self._results) < len(graph.outputs) or not self._results <= self._at.keys():
            raise CannotSplit("an output is another one too, or an input")
        self._names |= dict(zip(results, graph.outputs, strict=True))

    def cuts(self, limit: float) -> list[int]:
        """Return where to cut: as few pieces as can be, and of those ways the one by which the fewest bytes cross.

        Raises CannotSplit.
        """
        reach = [self._reach(start, limit) for start in range(len(self.steps))]
        crossing = self._crossing()
        routes: _Routes = {0: (0.0, ())}  # by where their next piece begins
        while routes:
            if ended := [route for start, route in routes.items() if reach[start] == len(self.steps)]:
                return list(min(ended)[1])
            routes = _one_piece_further(routes, reach, crossing)
        raise CannotSplit(f"no cut leaves pieces of at most {limit / 1e9:.2f} GB")

    def _reach(self, start: int, limit: float) -> int:
        """Return the last place where a piece may end that begins at a step."""
        taken: set[fx.Node] = set()
        size = 0
        for end, step in enumerate(self.steps[start:], start):
            more = {node for node in step.all_input_nodes if node in self._sizes} - taken
            size += sum(self._sizes[node] for node in more)
            if size > limit:
                return end
            taken |= more
        return len(self.steps)

    def _crossing(self) -> list[float]:
        """Return the bytes that are made before each place and taken after it; infinite where none can carry them."""
        crossing = [0.0] * (len(self.steps) + 1)
        for node, place in self._at.items():
            last = max((self._at.get(user, place) for user in node.users), default=place)
            carried = _carried_bytes(node) if last > place else 0.0
            for cut in range(place + 1, last + 1):
                crossing[cut] += carried
        return crossing

    def _crossing_nodes(self, cut: int) -> list[fx.Node]:
        return [node for node in self.steps[:cut] if any(self._at.get(user, -1) >= cut for user in node.users)]

    def piece(self, start: int, end: int) -> Graph:
        """Make a graph of the steps from `start` to `end`."""
        inside = self.steps[start:end]
        taken = dict.fromkeys(node for step in inside for node in step.all_input_nodes if node.op != "get_attr")
        inputs = [node for node in taken if not start <= self._at.get(node, -1) < end]
        outputs = self._given_by(start, end)
        made = fx.Graph()
        found: dict[fx.Node, fx.Node] = {}
        holders = {node: made.placeholder(self._name(node)) for node in inputs}
        for node, holder in holders.items():
            found[node] = _cast(made, holder, _dtype(node))
        for step in inside:
            for weight in (node for node in step.all_input_nodes if node.op == "get_attr" and node not in found):
                found[weight] = made.node_copy(weight)
            found[step] = made.node_copy(step, found.__getitem__)
        made.output(tuple(_cast(made, found[node], _carried(_dtype(node))) for node in outputs))
        return replace(
            self._graph,
            module=fx.GraphModule(self._module, made),
            inputs={self._name(node): self._example(node) for node in inputs},
            outputs=tuple(self._name(node) for node in outputs),
        )

    def _given_by(self, start: int, end: int) -> list[fx.Node]:
        """Return what is made within a piece and taken later, or is a result."""
        later = {node for node in self._crossing_nodes(end) if self._at[node] >= start}
        return [node for node in self.steps[start:end] if node in later | self._results]

    def _name(self, node: fx.Node) -> str:
        return self._names.setdefault(node, f"between_{self._at.get(node)}")

    def _example(self, node: fx.Node) -> Tensor:
        known = self._examples.get(self._name(node)) if node not in self._at else None
        return known if known is not None else torch.zeros(node.meta["val"].shape, dtype=_carried(_dtype(node)))


def _one_piece_further(routes: _Routes, reach: Sequence[int], crossing: Sequence[float]) -> _Routes:
    found: _Routes = {}
    for start, (bytes_so_far, cuts) in routes.items():
        for cut in range(start + 1, reach[start] + 1):
            total = bytes_so_far + crossing[cut]
            if total < found.get(cut, (inf, ()))[0]:
                found[cut] = (total, (*cuts, cut))
    return found


def _attribute(module: fx.GraphModule, node: fx.Node) -> Tensor:
    found: object = module
    for name in str(node.target).split("."):
        found = getattr(found, name)
    if not isinstance(found, Tensor):
        raise CannotSplit(f"{node.target} is no tensor")
    return found


def _dtype(node: fx.Node) -> torch.dtype:
    found: torch.dtype = node.meta["val"].dtype
    return found


def _carried(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype.is_floating_point else torch.int32


def _carried_bytes(node: fx.Node) -> float:
    value = node.meta.get("val")
    if not isinstance(value, Tensor) or value.dtype.is_complex:
        return inf
    return 4.0 * value.numel()


def _cast(graph: fx.Graph, node: fx.Node, dtype: torch.dtype) -> fx.Node:
    """Make a value of another type; of its own it stays what it is."""
    return graph.call_function(torch.ops.aten.to.dtype, (node, dtype))
