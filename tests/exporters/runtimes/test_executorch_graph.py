"""What is done to a lowered graph before it is written."""

from __future__ import annotations

import pytest

pytest.importorskip("executorch")

import torch
import torch.ao.quantization.fx._decomposed
from torch import Tensor, nn

from exporters.runtimes.executorch_graph import check_taken, sink
from profiler.errors import InternalError


class Prepared(nn.Module):
    """Computes all of its weights before it uses the first; the second is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(4.0))

    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        first = self.get_buffer("table").exp().sqrt()
        second = self.get_buffer("table").sin()
        between = values + first
        return between * second, second + values


def targets(program: torch.export.ExportedProgram) -> list[str]:
    return [str(node.target).split(".")[1] for node in program.graph.nodes if node.op == "call_function"]


def test_what_is_computed_of_weights_comes_just_before_its_first_use() -> None:
    values = torch.randn(4)
    program = torch.export.export(Prepared(), (values,))
    expected = program.module()(values)
    assert targets(program) == ["exp", "sqrt", "sin", "add", "mul", "add"]
    sink(program)
    program.graph.lint()
    assert targets(program) == ["exp", "sqrt", "add", "sin", "mul", "add"]
    for found, before in zip(program.module()(values), expected, strict=True):
        assert torch.equal(found, before)


def test_eight_bits_that_no_delegate_took_are_refused() -> None:
    class Left(nn.Module):
        def forward(self, codes: Tensor) -> Tensor:
            found: Tensor = torch.ops.quantized_decomposed.dequantize_per_tensor(codes, 0.1, 0, -127, 127, torch.int8)
            return found

    program = torch.export.export(Left(), (torch.zeros(3, dtype=torch.int8),))
    with pytest.raises(InternalError, match="layer has a quantized_decomposed"):
        check_taken("layer", program)
