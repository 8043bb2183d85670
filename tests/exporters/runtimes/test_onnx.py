"""Parts to ONNX files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.runtimes.onnx import export_part, write_model
from profiler.errors import InternalError, ModelError
from tests.exporters.small_pipelines import small_recipe

ROOT = Path(__file__).parents[3]
EXPORT_TO = """
import sys, torch
from pathlib import Path
from tests.exporters.runtimes.test_onnx import two_layers
from exporters.runtimes.onnx import export_part
from exporters.progress import Stages
from tests.exporters.small_pipelines import small_recipe
export_part(two_layers(), Path(sys.argv[1]), small_recipe(), Stages())
"""


class TwoLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.norm, self.second = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, values: Tensor) -> Tensor:
        found: Tensor = self.second(nn.functional.silu(self.norm(self.first(values))))
        return found


class Doubles(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values.double()


class Branches(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values if values.sum() > 0 else -values


def two_layers() -> Part:
    graph = Graph(module=TwoLayers().eval(), inputs={"values": torch.ones(1, 8)}, outputs=("found",))
    return Part(name="two_layers", graphs={"forward": graph})


def part_of(module: nn.Module) -> Part:
    graph = Graph(module=module, inputs={"values": torch.ones(1, 8)}, outputs=("found",))
    return Part(name="odd", graphs={"forward": graph})


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export_part(two_layers(), folder, small_recipe(), Stages())
    return folder / "components" / "two_layers" / "forward.onnx"


def test_the_manifest_describes_the_graph(tmp_path: Path) -> None:
    component = export_part(two_layers(), tmp_path, small_recipe(), Stages())
    function = component.functions["forward"]
    assert [(port.name, port.dtype, port.shape) for port in function.inputs] == [("values", "float32", (1, 8))]
    assert [(port.name, port.dtype, port.shape) for port in function.outputs] == [("found", "float32", (1, 4))]
    assert component.files == ("components/two_layers/forward.onnx",)
    assert component.parameters == 8 * 16 + 16 + 2 * 16 + 16 * 4 + 4


def test_the_graph_has_the_recipes_opset(exported: Path) -> None:
    opsets = {entry.domain: entry.version for entry in onnx.load(exported).opset_import}
    assert opsets[""] == 20


def test_another_process_writes_the_same_bytes(exported: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", EXPORT_TO, str(tmp_path)], env=environment, cwd=tmp_path, check=True)
    again = tmp_path / "components" / "two_layers" / "forward.onnx"
    assert again.read_bytes() == exported.read_bytes()


def test_no_path_or_trace_of_this_machine_is_left_in_the_file(exported: Path) -> None:
    data = exported.read_bytes()
    for trace in (str(ROOT).encode(), b"site-packages", b"stack_trace", b".py", b"pkg.torch"):
        assert trace not in data, trace


def test_large_weights_lie_in_a_file_beside_the_graph(exported: Path, tmp_path: Path) -> None:
    import onnx_ir

    files = write_model(onnx_ir.load(exported), tmp_path, "large.onnx", external_from_bytes=100)
    assert files == ["large.onnx", "large.onnx.data"]
    assert (tmp_path / "large.onnx.data").stat().st_size >= 8 * 16 * 4
    values = np.ones((1, 8), np.float32)
    small, large = (onnxruntime.InferenceSession(str(path)) for path in (exported, tmp_path / "large.onnx"))
    np.testing.assert_array_equal(small.run(None, {"values": values})[0], large.run(None, {"values": values})[0])


def test_a_boundary_of_another_type_is_an_internal_error(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="found is DOUBLE"):
        export_part(part_of(Doubles()), tmp_path, small_recipe(), Stages())


def test_a_module_that_torch_cannot_trace_is_the_models_fault(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot export odd\.forward"):
        export_part(part_of(Branches()), tmp_path, small_recipe(), Stages())
