"""Coded weights in ONNX files, run by ONNX Runtime."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quantize.schemes import Scheme, apply
from exporters.runtimes import onnx as onnx_runtime
from exporters.runtimes.onnx import export_part
from exporters.verify import difference
from profiler.records.recipe import EncoderScheme
from tests.exporters.quantize.test_schemes import words
from tests.exporters.small_pipelines import small_recipe

ALL: tuple[EncoderScheme, ...] = ("fp16", "int8", "nf4")
IDS = torch.tensor([[1, 5, 9, 2]], dtype=torch.int32)


class Rows(nn.Module):
    """Layers on a matrix, for which torch writes Gemm, and a weight that is used as it is."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 128, bias=False)

    def forward(self, values: Tensor) -> Tensor:
        states: Tensor = self.second(self.first(values)) + self.first.weight.sum() + self.second.weight[3, 5]
        return states


def part_of(module: nn.Module, value: Tensor, name: str = "text_encoder") -> Part:
    graph = Graph(module=module, inputs={"value": value}, outputs=("states",))
    return Part(name=name, graphs={"encode": graph}, encodes_text=name == "text_encoder")


def written(part: Part, scheme: EncoderScheme, folder: Path) -> Path:
    component = export_part(part, folder, small_recipe(text_encoder=scheme), Stages())
    assert component.precision == scheme
    return folder / component.files[0]


def off(path: Path, part: Part) -> float:
    graph = part.graphs["encode"]
    inputs = {name: value.numpy() for name, value in graph.inputs.items()}
    found = onnxruntime.InferenceSession(str(path)).run(None, inputs)[0]
    return difference(found, graph.run()[0].numpy()).relative


def kinds(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("scheme", ALL)
def test_the_file_computes_what_torch_computes_with_the_same_weights(
    scheme: EncoderScheme, ties: bool, tmp_path: Path
) -> None:
    network = words(ties=ties)
    apply([network], Scheme(name=scheme))
    part = part_of(network, IDS)
    assert off(written(part, scheme, tmp_path), part) < (1e-3 if scheme == "fp16" else 1e-6)


@pytest.mark.parametrize("scheme", ["int8", "nf4"])
def test_layers_on_a_matrix_and_weights_used_as_they_are_come_out_exact(scheme: EncoderScheme, tmp_path: Path) -> None:
    network = Rows().eval().requires_grad_(False)
    apply([network], Scheme(name=scheme))
    part = part_of(network, torch.randn(5, 64, generator=torch.Generator().manual_seed(0)))
    assert off(written(part, scheme, tmp_path), part) < 1e-6


def test_activations_are_not_rounded_to_eight_bits(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(*(nn.Linear(256, 256) for _ in range(8))).eval().requires_grad_(False)
    apply([network], Scheme(name="int8"))
    part = part_of(network, torch.randn(1, 7, 256) * torch.logspace(-2, 2, 256))
    assert off(written(part, "int8", tmp_path), part) < 1e-5


def test_nf4_layers_are_the_runtimes_own_operator_and_embeddings_look_up_codes(tmp_path: Path) -> None:
    network = words()
    apply([network], Scheme(name="nf4"))
    path = written(part_of(network, IDS), "nf4", tmp_path)
    assert kinds(path)["MatMulBnb4"] == 2
    stored = {entry.name: entry for entry in onnx.load(path).graph.initializer}
    assert all(np.prod(entry.dims) < 1000 for entry in stored.values() if entry.data_type == onnx.TensorProto.FLOAT)
    assert {entry.domain for entry in onnx.load(path).opset_import} == {"", "com.microsoft"}


@pytest.mark.parametrize("scheme", ["int8", "fp16"])
def test_other_schemes_need_no_operators_beside_the_standard(scheme: EncoderScheme, tmp_path: Path) -> None:
    network = words()
    apply([network], Scheme(name=scheme))
    path = written(part_of(network, IDS), scheme, tmp_path)
    assert {entry.domain for entry in onnx.load(path).opset_import} == {""}
    onnx.checker.check_model(onnx.load(path), full_check=True)


@pytest.mark.parametrize("scheme", ALL)
def test_a_tied_weight_is_stored_once(scheme: EncoderScheme, tmp_path: Path) -> None:
    sizes = []
    for ties in (False, True):
        network = words(ties=ties)
        applied = apply([network], Scheme(name=scheme))
        sizes.append(written(part_of(network, IDS), scheme, tmp_path / str(ties)).stat().st_size)
    assert sizes[0] - sizes[1] > 0.7 * applied.saved_bytes


def test_kept_layers_of_a_half_precision_encoder_stay_in_float32(tmp_path: Path) -> None:
    network = words()
    apply([network], Scheme(name="fp16", kept=("wide.*",)))
    part = part_of(network, IDS)
    path = written(part, "fp16", tmp_path)
    assert off(path, part) < 1e-3
    floats = [e for e in onnx.load(path).graph.initializer if e.data_type == onnx.TensorProto.FLOAT]
    assert [64, 48] in [list(entry.dims) for entry in floats]


def test_the_same_network_gives_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for turn in ("first", "second"):
        network = words()
        apply([network], Scheme(name="nf4"))
        found.append(written(part_of(network, IDS), "nf4", tmp_path / turn).read_bytes())
    assert found[0] == found[1]


def test_no_operator_is_used_that_phones_are_not_known_to_have(tmp_path: Path) -> None:
    relied_on = tomllib.loads((Path(onnx_runtime.__file__).with_name("onnx.toml")).read_text())
    assert relied_on["opset"] == small_recipe().opset
    network = words()
    apply([network], Scheme(name="nf4"))
    nodes = onnx.load(written(part_of(network, IDS), "nf4", tmp_path)).graph.node
    assert {node.op_type for node in nodes if node.domain} == set(relied_on["contrib"])
