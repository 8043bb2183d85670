"""Graphs cut into pieces for the Neural Engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("coremltools")

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quantize.schemes import Scheme, apply
from exporters.runtimes.coreml import export_part
from exporters.runtimes.coreml_split import CannotSplit, split
from exporters.verify import verify_part
from exporters.verify_coreml import MilInterpreter
from profiler.records.bundle import Component
from profiler.records.recipe import Precision
from tests.exporters.small_pipelines import small_recipe


class Hourglass(nn.Module):
    """What a U-Net has: a way down, a way up, and what skips from one to the other; a mask and a count cross too."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.down = nn.ModuleList([nn.Conv2d(4, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1)])
        self.middle = nn.Conv2d(32, 32, 3, 1, 1)
        self.up = nn.ModuleList([nn.Conv2d(48, 16, 3, 1, 1), nn.Conv2d(20, 4, 3, 1, 1)])
        self.time = nn.Linear(1, 32)

    def forward(self, latents: Tensor, timestep: Tensor, ids: Tensor) -> Tensor:
        bright, later = latents > 0, ids + 1
        first = self.down[0](latents)
        middle = self.middle(torch.relu(self.down[1](first)) + self.time(timestep)[..., None, None])
        second = self.up[0](torch.cat([nn.functional.interpolate(middle, scale_factor=2.0), first], 1))
        wide = self.up[1](torch.cat([nn.functional.interpolate(second, scale_factor=2.0), latents], 1))
        found: Tensor = torch.where(bright, wide, -wide) * later.float().sum()
        return found


class Stacked(nn.Module):
    """An embedding and layers, one of them wide inside."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(64, 64)
        self.layers = nn.ModuleList([nn.Linear(64, 256), nn.Linear(256, 64), nn.Linear(64, 64)])

    def forward(self, ids: Tensor) -> Tensor:
        states = self.words(ids)
        for layer in self.layers:
            states = torch.relu(layer(states))
        return states


def hourglass() -> Graph:
    torch.manual_seed(1)
    inputs = {"latents": torch.randn(1, 4, 16, 16), "timestep": torch.tensor([[0.5]]), "ids": torch.arange(3).int()}
    return Graph(module=Hourglass().eval(), inputs=inputs, outputs=("prediction",))


def stacked() -> Graph:
    return Graph(module=Stacked().eval(), inputs={"ids": torch.tensor([[1, 63]]).int()}, outputs=("states",))


def run_in_turn(graph: Graph, pieces: list[Graph]) -> Tensor:
    values = dict(graph.inputs)
    with torch.no_grad():
        for piece in pieces:
            assert all(value.dtype in (torch.float32, torch.int32) for value in piece.inputs.values())
            found = piece.module(*(values[name] for name in piece.inputs))
            values |= zip(piece.outputs, found, strict=True)
    return values[graph.outputs[0]]


def weight_bytes(graph: Graph) -> int:
    return sum(weight.numel() * 4 for weight in {id(each): each for each in graph.module.parameters()}.values())


def export(graph: Graph, precision: Precision, limit: int, folder: Path) -> tuple[Part, Component]:
    part = Part(name="denoiser", graphs={"predict": graph})
    recipe = small_recipe(runtime="coreml", precision=precision, compute_unit="all")
    return part, export_part(part, folder, recipe, Stages(), limit_bytes=limit)


@pytest.mark.parametrize(
    ("make", "limit", "fewest"), [(hourglass, 40_000, 3), (hourglass, 60_000, 2), (stacked, 90_000, 2)]
)
def test_pieces_in_turn_are_the_whole_each_small_enough_and_as_few_as_can_be(
    make: Callable[[], Graph], limit: int, fewest: int
) -> None:
    graph = make()
    pieces = split(graph, limit, halves=False)
    assert len(pieces) == fewest
    assert max(map(weight_bytes, pieces)) <= limit
    torch.testing.assert_close(run_in_turn(graph, pieces), graph.run()[0], rtol=0, atol=0)


def test_the_cut_is_where_the_fewest_bytes_cross() -> None:
    first, second = split(stacked(), 155_000, halves=False)
    assert first.outputs == tuple(second.inputs)
    assert [tuple(value.shape) for value in second.inputs.values()] == [(1, 2, 64)]  # not [1, 2, 256]


def test_a_graph_that_is_small_enough_stays_what_it_is() -> None:
    graph = stacked()
    (same,) = split(graph, 1_000_000, halves=False)
    assert same is graph
    (same,) = split(graph, round(weight_bytes(graph) / 2 * 1.03), halves=True)
    assert same is graph


def test_a_layer_larger_than_the_limit_cannot_be_split() -> None:
    with pytest.raises(CannotSplit, match=r"at most 0\.00 GB"):
        split(stacked(), 60_000, halves=False)


@pytest.mark.parametrize(("precision", "limit", "error"), [("fp32", 60_000, 1e-6), ("fp16", 30_000, 3e-3)])
def test_packages_in_turn_compute_what_the_source_does(
    precision: Precision, limit: int, error: float, tmp_path: Path
) -> None:
    part, component = export(hourglass(), precision, limit, tmp_path)
    function = component.functions["predict"]
    assert len(function.chain) > 1
    assert function.path == function.chain[0].path == "components/denoiser/predict_1.mlpackage"
    assert [port.name for port in function.inputs] == ["latents", "timestep", "ids"]
    assert [port.name for port in function.outputs] == ["prediction"]
    ports = [port for link in function.chain for port in (*link.inputs, *link.outputs)]
    assert {port.dtype for port in ports} == {"float32", "int32"}
    assert {path.split("/")[2] for path in component.files} == {link.path.split("/")[2] for link in function.chain}
    assert verify_part(part, component, tmp_path, MilInterpreter()).relative < error
    (note,) = component.notes
    assert note.startswith(f"In {len(function.chain)} packages of up to 0.00 GB that run one after the other")


def test_what_cannot_be_split_is_written_whole_and_says_so(tmp_path: Path) -> None:
    _, component = export(stacked(), "fp32", 60_000, tmp_path)
    assert component.functions["predict"].chain == ()
    (note,) = component.notes
    assert "in one piece: for the CPU and GPU only" in note


def test_other_compute_units_take_any_size(tmp_path: Path) -> None:
    part = Part(name="denoiser", graphs={"predict": stacked()})
    recipe = small_recipe(runtime="coreml", compute_unit="cpu_gpu")
    assert not export_part(part, tmp_path, recipe, Stages(), limit_bytes=60_000).functions["predict"].chain


def test_coded_weights_are_split_by_their_codes(tmp_path: Path) -> None:
    part = Part(name="text_encoder", graphs={"encode": stacked()}, encodes_text=True)
    apply(part.modules, Scheme(name="int8", rest="fp16"))
    recipe = small_recipe(runtime="coreml", precision="fp16", text_encoder="int8", compute_unit="all")
    component = export_part(part, tmp_path, recipe, Stages(), limit_bytes=26_000)
    chain = component.functions["encode"].chain
    assert len(chain) == 2
    sizes = [(tmp_path / link.path / "Data/com.apple.CoreML/weights/weight.bin").stat().st_size for link in chain]
    assert max(sizes) <= 26_000
    assert verify_part(part, component, tmp_path, MilInterpreter()).relative < 3e-3
