"""Constants that are nearly nothing, in exported graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.runtimes.onnx import export_part
from tests.exporters.small_pipelines import small_recipe


class Quotient(nn.Module):
    """What linear attention ends in."""

    def forward(self, values: Tensor) -> Tensor:
        return values / (values + 1e-15)


class NearOne(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values * 1.000005


class ExactlyNothing(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return (values + 0.0) * 1.0 + values


def exported(module: nn.Module, values: Tensor, folder: Path) -> onnxruntime.InferenceSession:
    part = Part(name="small", graphs={"f": Graph(module=module, inputs={"values": values}, outputs=("y",))})
    component = export_part(part, folder, small_recipe(), Stages())
    return onnxruntime.InferenceSession(str(folder / component.files[0]))


@pytest.mark.parametrize("module", [Quotient(), NearOne()])
def test_a_constant_that_is_nearly_nothing_is_kept(module: nn.Module, tmp_path: Path) -> None:
    values = torch.tensor([[0.0, 1.0, 2.0**20]])
    (found,) = exported(module, values, tmp_path).run(None, {"values": values.numpy()})
    np.testing.assert_array_equal(found, module(values).numpy())


def test_a_constant_that_is_nothing_is_still_left_out(tmp_path: Path) -> None:
    module, values = ExactlyNothing(), torch.ones(1, 3)
    exported(module, values, tmp_path)
    (path,) = tmp_path.rglob("*.onnx")
    assert [node.op_type for node in onnx.load(path).graph.node] == ["Add"]
