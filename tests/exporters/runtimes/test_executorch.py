"""Parts to ExecuTorch programs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("executorch")

import torch
from torch import Tensor, nn
from torch.nn import functional

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.runtimes import executorch, runtime
from exporters.runtimes.executorch_forms import ExecutorchForms, plain_attention
from exporters.runtimes.executorch_graph import islands
from exporters.runtimes.executorch_half import HalfInside
from exporters.verify import difference
from profiler.errors import InternalError, ModelError
from profiler.records.bundle import Component
from profiler.records.recipe import Recipe
from profiler.runner.engines.executorch_engine import ExecutorchEngine
from tests.exporters.runtimes.test_onnx import ROOT, Branches, Doubles, part_of, two_layers
from tests.exporters.small_pipelines import small_recipe

# What float16 rounding costs a norm: the weights and the result have 11 bits.
HALF = 1e-3


class Attention(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        heads = values.reshape(1, 4, 2, 4).transpose(1, 2)
        found: Tensor = functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return found


def recipe(**options: Any) -> Recipe:
    return small_recipe(runtime="executorch", **options)


def norm_part(width: int) -> Part:
    torch.manual_seed(0)
    values = torch.randn(1, 16, width)
    return Part(
        name="norm",
        graphs={"forward": Graph(module=nn.LayerNorm(width).eval(), inputs={"values": values}, outputs=("found",))},
    )


def relative(part: Part, component: Component, folder: Path) -> float:
    calls = ExecutorchEngine().load(part.name, component, folder)
    (graph,) = part.graphs.values()
    found = calls["forward"]({name: value.numpy() for name, value in graph.inputs.items()})
    return difference(found[0], graph.run()[0].numpy()).relative


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Component, Path]:
    folder = tmp_path_factory.mktemp("exported")
    return executorch.export_part(two_layers(), folder, recipe(), Stages()), folder


def test_the_format_is_found_by_its_recipes_name() -> None:
    assert runtime("executorch").tools == ("executorch", "torchao")
    assert runtime("executorch").engine().name == "executorch"


def test_the_manifest_describes_the_program(exported: tuple[Component, Path]) -> None:
    component, _ = exported
    function = component.functions["forward"]
    assert [(port.name, port.dtype, port.shape) for port in function.inputs] == [("values", "float32", (1, 8))]
    assert [(port.name, port.dtype, port.shape) for port in function.outputs] == [("found", "float32", (1, 4))]
    assert component.files == ("components/two_layers/forward.pte",)
    assert component.precision == "fp32"


def test_the_program_computes_what_the_module_does(exported: tuple[Component, Path]) -> None:
    assert relative(two_layers(), *exported) < 1e-6


def test_the_same_part_is_the_same_bytes_and_names_nothing_of_this_machine(
    exported: tuple[Component, Path], tmp_path: Path
) -> None:
    component, folder = exported
    executorch.export_part(two_layers(), tmp_path, recipe(), Stages())
    data = (folder / component.files[0]).read_bytes()
    assert (tmp_path / component.files[0]).read_bytes() == data
    for trace in (str(ROOT).encode(), b"site-packages", b".py"):
        assert trace not in data, trace


def test_halves_stay_inside(tmp_path: Path) -> None:
    part = two_layers()
    component = executorch.export_part(part, tmp_path, recipe(precision="fp16"), Stages())
    function = component.functions["forward"]
    assert {port.dtype for port in (*function.inputs, *function.outputs)} == {"float32"}
    assert component.precision == "fp16"
    assert component.notes == ("forward: 3 delegated subgraphs, 9 operations left to portable kernels",)
    assert 0 < relative(part, component, tmp_path) < HALF
    assert {weight.dtype for weight in part.graphs["forward"].module.parameters()} == {torch.float32}


def test_convolutions_of_halves_are_told_to_be_wide_in_the_file(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.Flatten(2), nn.Linear(16, 512))
    graph = Graph(module=network.eval(), inputs={"image": torch.randn(1, 64, 4, 4)}, outputs=("found",))
    part = Part(name="decoder", graphs={"forward": graph})
    half = executorch.export_part(part, tmp_path / "half", recipe(precision="fp16"), Stages())
    note, _ = half.notes
    assert note.startswith("81 % of its weights, rounded to halves, are float32 in the file")
    size = (tmp_path / "half" / half.files[0]).stat().st_size
    convolutions = 64 * 64 * 9
    assert size > 4 * convolutions + 2 * 16 * 512
    assert size < 4 * (convolutions + 16 * 512)
    assert relative(part, half, tmp_path / "half") < 2 * HALF


def test_a_part_without_weights_stays_exact(tmp_path: Path) -> None:
    part = part_of(Attention())
    graph = Graph(module=Attention(), inputs={"values": torch.randn(1, 4, 8)}, outputs=("found",))
    part = Part(name="attention", graphs={"forward": graph})
    component = executorch.export_part(part, tmp_path, recipe(precision="fp16"), Stages())
    assert component.precision == "fp32"
    assert relative(part, component, tmp_path) < 1e-6


@pytest.mark.parametrize("width", [384, 768, 2048])
def test_a_bare_layer_norm_of_halves_is_silently_wrong_and_ours_is_not(width: int, tmp_path: Path) -> None:
    """The fault that the recipe avoids; once this runtime computes it right, the rule can go."""
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    part = norm_part(width)
    (graph,) = part.graphs.values()
    ours = executorch.export_part(part, tmp_path, recipe(precision="fp16"), Stages())
    assert relative(part, ours, tmp_path) < HALF

    bare = torch.export.export(HalfInside(graph.module).eval(), tuple(graph.inputs.values()), strict=False)
    edge = to_edge_transform_and_lower(
        bare, partitioner=[XnnpackPartitioner()], compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    executorch.write(edge, tmp_path / ours.files[0])
    found = relative(part, ours, tmp_path)
    assert np.isfinite(found)
    assert found > 0.5


def test_a_norm_of_halves_is_refused_however_it_came_there() -> None:
    (graph,) = norm_part(384).graphs.values()
    bare = torch.export.export(HalfInside(graph.module).eval(), tuple(graph.inputs.values()), strict=False)
    with pytest.raises(InternalError, match="norms must be float32"):
        executorch.lower("norm.forward", bare)


def test_a_boundary_of_another_type_is_an_internal_error(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match=r"found is torch\.float64"):
        executorch.export_part(part_of(Doubles()), tmp_path, recipe(), Stages())


def test_a_module_that_torch_cannot_trace_is_the_models_fault(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot export odd\.forward"):
        executorch.export_part(part_of(Branches()), tmp_path, recipe(), Stages())


def test_attention_in_our_form_leaves_fewer_islands() -> None:
    graph = Graph(module=Attention(), inputs={"values": torch.randn(1, 4, 8)}, outputs=("found",))
    ours, theirs = (
        islands(executorch.lower("attention", executorch.trace(graph, "fp32", forms=forms)))
        for forms in (ExecutorchForms(), ExecutorchForms(attention=False))
    )
    assert ours < theirs


_MASK = torch.rand(5, 7, generator=torch.Generator().manual_seed(1)) > 0.4


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": 0.3},
        {"attn_mask": _MASK | (torch.arange(7) == 0)},
        {"attn_mask": _MASK.float() * -3},
        {"attn_mask": torch.zeros(2, 1, 5, 7)},
    ],
    ids=["plain", "scale", "booleans", "numbers", "per image"],
)
def test_plain_attention_is_torchs(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 4)
    torch.testing.assert_close(
        plain_attention(query, key, value, **options),
        functional.scaled_dot_product_attention(query, key, value, **options),
    )


def test_plain_attention_takes_causal_and_grouped_heads_and_no_batch() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8)
    for options in ({"is_causal": True}, {"is_causal": False}):
        torch.testing.assert_close(
            plain_attention(query, key, key, enable_gqa=True, **options),
            functional.scaled_dot_product_attention(query, key, key, enable_gqa=True, **options),
        )
    torch.testing.assert_close(
        plain_attention(query[0], query[0], query[0]),
        functional.scaled_dot_product_attention(query[0], query[0], query[0]),
    )


def test_a_row_that_is_masked_as_a_whole_stays_finite() -> None:
    values = torch.randn(1, 1, 4, 8)
    found = plain_attention(values, values, values, attn_mask=torch.zeros(4, 4, dtype=torch.bool))
    assert found.isfinite().all()


def test_the_forms_end_with_an_error_and_never_reach_another_thread() -> None:
    half = torch.randn(2, 8).half()
    layer_norm = functional.layer_norm
    elsewhere: list[Tensor] = []

    def other() -> None:
        elsewhere.append(functional.layer_norm(half, (8,)))

    def fail_meanwhile() -> None:
        with ExecutorchForms():
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_meanwhile()
    assert functional.layer_norm is layer_norm
    assert torch.equal(elsewhere[0], functional.layer_norm(half, (8,)))


def test_a_long_stage_tells_that_it_goes_on() -> None:
    told: list[tuple[str, int, int]] = []
    heard = threading.Event()

    def tell(stage: str, done: int, total: int) -> None:
        told.append((stage, done, total))
        if len(told) == 3:
            heard.set()

    stages = Stages(tell, total=4)
    stages.begin("lower denoiser.predict")
    with stages.heartbeat(every_s=0.001):
        assert heard.wait(30)
    assert told[0] == ("lower denoiser.predict", 0, 4)
    assert told[1][0].startswith("lower denoiser.predict, ")
    assert {each[1:] for each in told} == {(0, 4)}
