"""ExecuTorch programs in the runner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

pytest.importorskip("executorch")
pytest.importorskip("diffusers")

import torch
from torch import Tensor, nn

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.runtimes.executorch import export_part
from profiler.records.bundle import Component
from profiler.records.plan import Port
from profiler.records.recipe import Recipe
from profiler.runner.engines.engine import EngineFailure
from profiler.runner.engines.executorch_engine import ExecutorchEngine, _failure


class Picks(nn.Module):
    """Takes both types of the boundary, and a weight that shows in the file's length."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 8)

    def forward(self, numbers: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        found = self.table(numbers) * scale
        return found, found.sum(-1)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Component, Path]:
    torch.manual_seed(0)
    inputs = {"numbers": torch.arange(4, dtype=torch.int32)[None], "scale": torch.ones(1)}
    graph = Graph(module=Picks().eval(), inputs=inputs, outputs=("found", "sums"))
    folder = tmp_path_factory.mktemp("picks")
    recipe = Recipe(runtime="executorch", height=8, width=8)
    return export_part(Part(name="picks", graphs={"pick": graph}), folder, recipe, Stages()), folder


def feeds(scale: float = 1.0) -> dict[str, Any]:
    return {"numbers": np.arange(4, dtype=np.int32)[None], "scale": np.array([scale], np.float32)}


def load_failure(component: Component, folder: Path) -> str:
    with pytest.raises(EngineFailure) as caught:
        ExecutorchEngine().load("picks", component, folder)
    assert (caught.value.reason, caught.value.component) == ("load_failed", "picks")
    return str(caught.value)


def with_input(component: Component, number: int, port: Port) -> Component:
    function = component.functions["pick"]
    inputs = (*function.inputs[:number], port, *function.inputs[number + 1 :])
    return replace(component, functions={"pick": replace(function, inputs=inputs)})


def test_arrays_go_in_and_come_out(exported: tuple[Component, Path]) -> None:
    call = ExecutorchEngine().load("picks", *exported)["pick"]
    found, sums = call(feeds(2.0))
    assert (found.dtype, found.shape, sums.shape) == (np.float32, (1, 4, 8), (1, 4))
    np.testing.assert_allclose(found.sum(-1), sums, rtol=1e-5)


def test_a_result_outlives_the_next_call_and_the_engine(exported: tuple[Component, Path]) -> None:
    call = ExecutorchEngine().load("picks", *exported)["pick"]
    first = call(feeds(1.0))[0]
    kept = first.copy()
    second = call(feeds(3.0))[0]
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_allclose(second, 3 * kept, rtol=1e-6)


@pytest.mark.filterwarnings("error")
def test_arrays_that_are_read_only_or_views_are_taken(exported: tuple[Component, Path]) -> None:
    call = ExecutorchEngine().load("picks", *exported)["pick"]
    expected = call(feeds())[0]
    frozen = feeds()
    for array in frozen.values():
        array.flags.writeable = False
    np.testing.assert_array_equal(call(frozen)[0], expected)
    strided = np.repeat(np.arange(4, dtype=np.int32), 2)[None, ::2]
    np.testing.assert_array_equal(call({**feeds(), "numbers": strided})[0], expected)


def test_the_threads_are_those_asked_for() -> None:
    code = "from profiler.runner.engines.executorch_engine import ExecutorchEngine as E; print(E(threads=3).threads)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "3\n"
    assert ended.stderr == ""


def test_the_engine_leaves_the_exporter_out_of_the_process() -> None:
    code = (
        "import sys; import profiler.runner.engines.executorch_engine; "
        "print([name for name in sys.modules if name.startswith(('executorch.exir', 'torchao', 'onnxruntime'))])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_a_truncated_program_says_how_much_is_there(exported: tuple[Component, Path], tmp_path: Path) -> None:
    component, folder = exported
    data = (folder / component.files[0]).read_bytes()
    place = tmp_path / component.files[0]
    place.parent.mkdir(parents=True)
    for length, words in ((0, "overflow"), (len(data) // 2, "File size is too small"), (len(data) - 64, "too small")):
        place.write_bytes(data[:length])
        assert words in load_failure(component, tmp_path)


def test_a_file_that_is_no_program_is_told(
    exported: tuple[Component, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    component, _ = exported
    place = tmp_path / component.files[0]
    place.parent.mkdir(parents=True)
    place.write_bytes(b"this is something else " * 100)
    assert "Program identifier" in load_failure(component, tmp_path)
    place.unlink()
    assert "No such file" in load_failure(component, tmp_path)
    assert capsys.readouterr().err == ""


def test_a_program_that_is_not_the_manifests_is_told(exported: tuple[Component, Path]) -> None:
    component, folder = exported
    wide = Port(name="numbers", dtype="int32", shape=(1, 5))
    message = load_failure(with_input(component, 0, wide), folder)
    assert "pick.pte takes int32 [1, 4] for numbers, the manifest says int32 [1, 5]" in message
    whole = Port(name="scale", dtype="int32", shape=(1,))
    assert "float32 [1] for scale, the manifest says int32 [1]" in load_failure(with_input(component, 1, whole), folder)
    function = component.functions["pick"]
    fewer = replace(component, functions={"pick": replace(function, outputs=function.outputs[:1])})
    assert "returns 2 tensors, the manifest says 1" in load_failure(fewer, folder)


def test_a_call_with_another_shape_is_an_inference_failure(exported: tuple[Component, Path]) -> None:
    call = ExecutorchEngine().load("picks", *exported)["pick"]
    with pytest.raises(EngineFailure, match="0x10") as caught:
        call({**feeds(), "numbers": np.zeros((1, 9), np.int32)})
    assert caught.value.reason == "inference_failed"
    assert np.isfinite(call(feeds())[0]).all()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("std::bad_alloc"),
        RuntimeError("Failed to load method forward, error: 0x:21"),
        RuntimeError("method->execute() failed with error 0x31"),
    ],
    ids=str,
)
def test_a_lack_of_memory_is_the_protocols_word(error: Exception) -> None:
    assert _failure("denoiser", error, "load_failed").reason == "out_of_memory"


def test_another_error_keeps_its_reason() -> None:
    assert _failure("denoiser", RuntimeError("failed with error 0x1"), "inference_failed").reason == "inference_failed"
