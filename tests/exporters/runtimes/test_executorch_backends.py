"""ExecuTorch programs for backends that nothing here runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("executorch")

import torch
from torch import nn

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.quantize.schemes import Scheme, apply
from exporters.runtimes import check_expresses, executorch, runtime
from profiler.errors import InputError
from profiler.records.recipe import Backend, Precision, recipe_of
from profiler.runner.engines.engine import EngineFailure
from profiler.runner.engines.executorch_engine import ExecutorchEngine
from tests.exporters.small_pipelines import small_recipe

WIDTH = 256
DELEGATES: dict[Backend, bytes] = {"coreml": b"CoreMLBackend", "vulkan": b"VulkanBackend"}


def norm_and_layer(*, encodes_text: bool = False) -> Part:
    torch.manual_seed(0)
    network = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU()).eval().requires_grad_(False)
    graph = Graph(module=network, inputs={"values": torch.randn(1, 7, WIDTH)}, outputs=("found",))
    return Part(name="layers", graphs={"forward": graph}, encodes_text=encodes_text)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("backend", ["coreml", "vulkan"])
def test_a_program_is_one_delegate_with_weights_as_wide_as_the_recipe_says(
    backend: Backend, precision: Precision, tmp_path: Path
) -> None:
    part = norm_and_layer(encodes_text=precision == "fp16")
    if precision == "fp16":
        apply(part.modules, Scheme(name="fp16"))
    recipe = recipe_of(32, 32, runtime="executorch", backend=backend, precision=precision)
    component = executorch.export_part(part, tmp_path, recipe, Stages())
    data = (tmp_path / component.files[0]).read_bytes()
    weights = WIDTH * WIDTH * (2 if precision == "fp16" else 4)
    assert weights < len(data) < weights + 30_000
    assert data.count(DELEGATES[backend]) == 1
    assert b"XnnpackBackend" not in data
    assert component.precision == precision
    with pytest.raises(EngineFailure, match=DELEGATES[backend].decode()) as caught:
        ExecutorchEngine().load("layers", component, tmp_path)
    assert caught.value.reason == "load_failed"


@pytest.mark.parametrize("backend", ["coreml", "vulkan"])
def test_it_is_said_that_nothing_here_runs_them(backend: Backend) -> None:
    target = runtime("executorch")
    assert target.unverified(small_recipe(runtime="executorch")) is None
    reason = target.unverified(small_recipe(runtime="executorch", backend=backend))
    assert reason is not None
    assert f"does not run programs for its {backend} backend" in reason


@pytest.mark.parametrize("scheme", ["int8", "nf4", "fp16"])
@pytest.mark.parametrize("backend", ["coreml", "vulkan"])
def test_weights_that_a_backend_would_widen_are_refused(backend: Backend, scheme: str) -> None:
    recipe = small_recipe(runtime="executorch", backend=backend, text_encoder=scheme)
    with pytest.raises(InputError, match=f"the {backend} backend stores all weights as fp32"):
        check_expresses(recipe, runtime("executorch"))
    check_expresses(small_recipe(runtime="executorch", text_encoder=scheme), runtime("executorch"))


def test_other_formats_have_no_backends() -> None:
    with pytest.raises(InputError, match="onnx bundles have no backend vulkan") as caught:
        check_expresses(small_recipe(backend="vulkan"), runtime("onnx"))
    assert caught.value.hint == "Backends are for --runtime executorch."
