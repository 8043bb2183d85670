"""Graphs in half precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.runtimes.onnx import export_part
from exporters.verify import difference
from profiler.errors import ModelError
from tests.exporters.small_pipelines import small_recipe
from tests.exporters.wide_networks import LargeNorm, LargeResidual, LinearAttention, PlainAttention, graph_of


class Network(nn.Module):
    """A timestep that needs its fraction, layers with a norm, a softmax and a resize between them, a wide output."""

    def __init__(self, width: int = 384) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.Conv2d(8, 3, 3)
        self.wide = nn.Sequential(nn.Linear(1, width), nn.LayerNorm(width), nn.Linear(width, 8))

    def forward(self, values: Tensor, timestep: Tensor) -> Tensor:
        moment = self.wide(torch.sin(timestep * 3.0)[:, None])
        states = self.norm(self.first(values) + moment[:, :, None, None])
        states = nn.functional.interpolate(states.softmax(1), scale_factor=2.0, mode="nearest")
        image: Tensor = self.second(states)
        return image + 200.3


def network_part(module: nn.Module | None = None) -> Part:
    values = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    inputs = {"values": values, "timestep": torch.tensor([999.37])}
    graph = Graph(module=(module or Network()).eval().requires_grad_(False), inputs=inputs, outputs=("image",))
    return Part(name="denoiser", graphs={"predict": graph})


def exported(part: Part, folder: Path) -> Path:
    component = export_part(part, folder, small_recipe(precision="fp16"), Stages())
    assert component.precision == "fp16"
    return folder / component.files[0]


def test_the_output_is_within_half_precision_and_its_last_operations_are_exact(tmp_path: Path) -> None:
    part = network_part()
    graph = part.graphs["predict"]
    session = onnxruntime.InferenceSession(str(exported(part, tmp_path)))
    image = session.run(None, {name: value.numpy() for name, value in graph.inputs.items()})[0]
    assert image.dtype == np.float32
    reference = graph.run()[0].numpy()
    assert difference(image - 200.3, reference - 200.3).relative < 2e-3
    assert difference(image, reference).max_absolute < 5e-3  # half precision steps by 0.125 there


def test_layers_weights_are_half_and_norms_and_resize_scales_are_not(tmp_path: Path) -> None:
    model = onnx.load(exported(network_part(), tmp_path))
    types = {entry.name: entry.data_type for entry in model.graph.initializer}
    for node in model.graph.node:
        weights = [types[name] for name in node.input if name in types]
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            assert set(weights) == {onnx.TensorProto.FLOAT16}, node.name
        elif node.op_type in ("LayerNormalization", "InstanceNormalization", "Resize"):
            assert onnx.TensorProto.FLOAT16 not in weights, node.name
    onnx.checker.check_model(model, full_check=True)


def test_the_file_is_half_as_large(tmp_path: Path) -> None:
    part = network_part(Network(width=20_000))
    half = exported(part, tmp_path / "half").stat().st_size
    whole = export_part(part, tmp_path / "whole", small_recipe(), Stages())
    # The norm's two weights a channel stay as they are.
    assert half / (tmp_path / "whole" / whole.files[0]).stat().st_size < 0.62


def test_a_weight_beyond_half_precision_is_named_and_refused(tmp_path: Path) -> None:
    network = Network().requires_grad_(False)
    network.first.weight.view(-1)[0] = 1e5
    with pytest.raises(ModelError, match=r"first\.weight holds 1e\+05, which is beyond half precision"):
        exported(network_part(network), tmp_path)


def test_arithmetic_without_weights_stays_exact(tmp_path: Path) -> None:
    class Sum(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return values @ values

    part = Part(
        name="guide_step", graphs={"f": Graph(module=Sum(), inputs={"values": torch.ones(2, 2)}, outputs=("sum",))}
    )
    assert export_part(part, tmp_path, small_recipe(precision="fp16"), Stages()).precision == "fp32"


def test_the_same_network_gives_the_same_bytes(tmp_path: Path) -> None:
    assert (
        exported(network_part(), tmp_path / "one").read_bytes()
        == exported(network_part(), tmp_path / "two").read_bytes()
    )


def in_real_halves(graph: Graph, folder: Path) -> npt.NDArray[np.float32]:
    """Run a graph with NumPy: ONNX Runtime has no half-precision products on this CPU, and widens around them."""
    path = exported(Part(name="denoiser", graphs={"f": graph}), folder)
    with np.errstate(all="ignore"):
        (found,) = ReferenceEvaluator(str(path)).run(None, {key: value.numpy() for key, value in graph.inputs.items()})
    return np.asarray(found)


def products_in(folder: Path) -> list[int]:
    (path,) = folder.rglob("*.onnx")
    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    types = {value.name: value.type.tensor_type.elem_type for value in (*model.graph.value_info, *model.graph.output)}
    return [types[node.output[0]] for node in model.graph.node if node.op_type in ("MatMul", "Gemm")]


@pytest.mark.parametrize(
    ("module", "scale", "wide"),
    [(LinearAttention(), 20.0, False), (LargeNorm(), 1000.0, False), (LargeResidual(), 300.0, True)],
)
def test_what_exceeds_half_precision_survives(module: nn.Module, scale: float, wide: bool, tmp_path: Path) -> None:
    graph = graph_of(module, scale=scale, wide=wide)
    assert difference(in_real_halves(graph, tmp_path), graph.run()[0].numpy()).relative < 2e-3


def test_a_stream_beyond_half_precision_is_lost_where_nobody_says_that_it_is_wide(tmp_path: Path) -> None:
    graph = graph_of(LargeResidual(), tokens=4, scale=300.0)
    assert not np.isfinite(in_real_halves(graph, tmp_path)).all()


def test_only_products_that_no_softmax_bounds_stay_in_float32(tmp_path: Path) -> None:
    halves, floats = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    in_real_halves(graph_of(PlainAttention(), tokens=16), tmp_path / "plain")
    assert set(products_in(tmp_path / "plain")) == {halves}
    in_real_halves(graph_of(LinearAttention(), tokens=16), tmp_path / "linear")
    assert sorted(products_in(tmp_path / "linear")) == [floats] * 2 + [halves] * 4
