"""What stays in float32 in Core ML programs of half precision."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn

pytest.importorskip("coremltools")

from exporters.parts import Graph, Part
from exporters.progress import Stages
from exporters.runtimes.coreml import export_part
from exporters.verify import difference
from exporters.verify_coreml import MilInterpreter, read_program
from profiler.runner.engines.coreml_package import open_package
from tests.exporters.small_pipelines import small_recipe
from tests.exporters.wide_networks import LargeNorm, LargeResidual, LinearAttention, PlainAttention, graph_of


def run(graph: Graph, folder: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    part = Part(name="denoiser", graphs={"f": graph})
    component = export_part(part, folder, small_recipe(runtime="coreml", precision="fp16"), Stages())
    (found,) = MilInterpreter().load("denoiser", component, folder)["f"]({"states": graph.inputs["states"].numpy()})
    return np.asarray(found)


def halves_of(folder: Path, kind: str) -> list[bool]:
    (package,) = folder.rglob("*.mlpackage")
    return [step.halves[0] for step in read_program(open_package(package)).steps if step.kind == kind]


@pytest.mark.parametrize(
    ("module", "scale", "wide"),
    [(LinearAttention(), 20.0, False), (LargeNorm(), 1000.0, False), (LargeResidual(), 300.0, True)],
)
def test_what_exceeds_half_precision_survives(module: nn.Module, scale: float, wide: bool, tmp_path: Path) -> None:
    graph = graph_of(module, scale=scale, wide=wide)
    assert difference(run(graph, tmp_path), graph.run()[0].numpy()).relative < 3e-3


def test_a_stream_beyond_half_precision_is_lost_where_nobody_says_that_it_is_wide(tmp_path: Path) -> None:
    assert not np.isfinite(run(graph_of(LargeResidual(), tokens=4, scale=300.0), tmp_path)).all()


def test_only_products_that_no_softmax_bounds_stay_in_float32(tmp_path: Path) -> None:
    run(graph_of(PlainAttention(), tokens=16), tmp_path / "plain")
    assert halves_of(tmp_path / "plain", "matmul") == [True, True]
    run(graph_of(LinearAttention(), tokens=16), tmp_path / "linear")
    assert halves_of(tmp_path / "linear", "matmul") == [False, False]
    assert set(halves_of(tmp_path / "linear", "linear")) == {True}
    assert set(halves_of(tmp_path / "linear", "real_div")) == {False}
