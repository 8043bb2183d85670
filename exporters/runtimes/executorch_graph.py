"""What a lowered graph must not have, how often it changes hands, and the order of what it computes."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from profiler.errors import InternalError

_NORMS = ("native_layer_norm", "native_group_norm")


def islands(edge: Any) -> int:
    """Count the delegated subgraphs: what lowering time follows, and how often a call changes hands."""
    nodes = edge.exported_program().graph.nodes
    return sum("executorch_call_delegate" in str(node.target) for node in nodes)


def placement(edge: Any) -> str:
    """Say how much of a lowered function was delegated."""
    called = [node for node in edge.exported_program().graph.nodes if node.op == "call_function"]
    left = [node for node in called if "delegate" not in str(node.target) and "getitem" not in str(node.target)]
    return f"{islands(edge)} delegated subgraphs, {len(left)} operations left to portable kernels"


def check_norms(name: str, program: ExportedProgram) -> None:
    """Refuse a norm of halves, however it came here: this runtime computes it wrong and says nothing."""
    for node in program.graph.nodes:
        if any(norm in str(node.target) for norm in _NORMS) and node.args[0].meta["val"].dtype != torch.float32:
            raise InternalError(
                f"{name} has a {node.target} in {node.args[0].meta['val'].dtype}; norms must be float32"
            )


def check_taken(name: str, program: ExportedProgram) -> None:
    """Refuse a weight of eight bits that no delegate took: runtimes on devices have no operator to decode it."""
    for node in program.graph.nodes:
        if "quantized_decomposed" in str(node.target):
            raise InternalError(f"{name} has a {node.target} that XNNPACK did not take")


def sink(program: ExportedProgram) -> None:
    """Move what is computed of weights alone to its first use: lowering leaves it all in front, where every layer's
    decoded weight would be in memory at once."""
    varying = {node for node in program.graph.nodes if node.name in program.graph_signature.user_inputs}
    waiting: set[Node] = set()
    for node in list(program.graph.nodes):
        if node.op == "call_function" and varying.isdisjoint(node.all_input_nodes):
            waiting.add(node)
        else:
            _place_inputs(node, waiting, node)
            varying |= {node} if node.op == "call_function" else set()
    program.graph_module.recompile()


def _place_inputs(node: Node, waiting: set[Node], before: Node) -> None:
    for each in node.all_input_nodes:
        if each in waiting:
            waiting.remove(each)
            _place_inputs(each, waiting, before)
            before.prepend(each)
