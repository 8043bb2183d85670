from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("coremltools")

import coremltools
import torch
from torch import Tensor, nn

from exporters.foreign.wrapping import Wishes, wrap
from profiler.bundle_files import check_files, check_names
from profiler.errors import InvalidRecord, ModelError
from tests.exporters.foreign.graphs import SIDE, save_mlpackage
from tests.exporters.foreign.wrapped import media_of, refused

IMAGE = (1, 3, SIDE, SIDE)


class Picture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, sample: Tensor) -> Tensor:
        return torch.sigmoid(self.mix(sample)) * 255


class Sorted(nn.Module):
    """An operation that the interpreter does not know."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sort(x, dim=-1)[0]


class Root(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.sqrt(x)


def floats(name: str, *shape: Any, dtype: Any = np.float32) -> Any:
    return coremltools.TensorType(name=name, shape=shape, dtype=dtype)


OUT = [coremltools.TensorType(name="out", dtype=np.float32)]


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("coreml") / "net.mlpackage"
    torch.manual_seed(0)
    return save_mlpackage(path, Picture(), [floats("sample", *IMAGE)], [torch.rand(IMAGE)], outputs=OUT)


def test_a_package_is_copied_and_described_by_its_own_signature(picture: Path, tmp_path: Path) -> None:
    bundle = wrap(picture, Wishes(), tmp_path / "bundle")
    check_names(tmp_path / "bundle", bundle)
    check_files(tmp_path / "bundle", bundle)
    component = bundle.components["model"]
    function = component.functions["run"]
    assert [(p.name, p.shape) for p in (*function.inputs, *function.outputs)] == [("sample", IMAGE), ("out", IMAGE)]
    copied = tmp_path / "bundle" / function.path
    for source in (path for path in picture.rglob("*") if path.is_file()):
        assert (copied / source.relative_to(picture)).read_bytes() == source.read_bytes()
    assert component.parameters >= 81 + 3
    assert bundle.recipe.precision == "fp16"
    assert media_of(tmp_path / "bundle") == "image"


def test_it_is_run_once_by_the_interpreter_that_stands_in(picture: Path, tmp_path: Path) -> None:
    verification = wrap(picture, Wishes(), tmp_path / "bundle").verification
    assert (verification.engine or "").startswith("mil-interpreter ")
    assert "Core ML runs on Apple devices only; mil-interpreter" in (verification.not_run or "")


def test_an_operation_that_the_interpreter_does_not_know_is_a_note(tmp_path: Path) -> None:
    path = save_mlpackage(tmp_path / "net.mlpackage", Sorted(), [floats("x", 1, 4)], [torch.rand(1, 4)], outputs=OUT)
    verification = wrap(path, Wishes(), tmp_path / "bundle").verification
    assert verification.engine is None
    assert not list((tmp_path / "bundle").rglob("weights"))  # an empty folder would not reach a device
    assert "here nothing ran it" in (verification.not_run or "")
    assert media_of(tmp_path / "bundle") == "tensor"


def test_a_package_that_makes_nan_is_the_models_fault(tmp_path: Path) -> None:
    path = save_mlpackage(tmp_path / "net.mlpackage", Root(), [floats("x", 1, 9)], [torch.rand(1, 9)], outputs=OUT)
    assert "values that are not finite" in refused(path, tmp_path, ModelError)


def test_halves_at_the_boundary_are_refused_with_what_to_do(tmp_path: Path) -> None:
    inputs = [floats("x", 1, 4, dtype=np.float16)]
    path = save_mlpackage(tmp_path / "net.mlpackage", Root(), inputs, [torch.rand(1, 4)])
    told = refused(path, tmp_path)
    assert "x is float16; a runner gives and takes float32 and int32" in told
    assert "coremltools.TensorType" in told


def test_images_of_core_ml_are_refused_with_what_to_do(tmp_path: Path) -> None:
    inputs = [coremltools.ImageType(name="sample", shape=IMAGE)]
    path = save_mlpackage(tmp_path / "net.mlpackage", Picture(), inputs, [torch.rand(IMAGE)], outputs=OUT)
    assert "sample is imageType" in refused(path, tmp_path)


def test_flexible_shapes_are_refused(tmp_path: Path) -> None:
    inputs = [floats("x", 1, coremltools.RangeDim(1, 8, default=4))]
    path = save_mlpackage(tmp_path / "net.mlpackage", Root(), inputs, [torch.rand(1, 4)], outputs=OUT)
    assert "x has a flexible shape" in refused(path, tmp_path)


def test_a_package_with_paths_that_lead_outside_is_refused(picture: Path, tmp_path: Path) -> None:
    path = shutil.copytree(picture, tmp_path / "net.mlpackage")
    manifest = json.loads((path / "Manifest.json").read_text())
    for item in manifest["itemInfoEntries"].values():
        item["path"] = f"../../{item['path']}"
    (path / "Manifest.json").write_text(json.dumps(manifest))
    assert "unsafe path" in refused(path, tmp_path, InvalidRecord)


def test_a_package_with_a_link_is_refused(picture: Path, tmp_path: Path) -> None:
    path = shutil.copytree(picture, tmp_path / "net.mlpackage")
    weights = next(path.rglob("weight.bin"))
    weights.rename(tmp_path / "weight.bin")
    weights.symlink_to(tmp_path / "weight.bin")
    assert "is a link" in refused(path, tmp_path, InvalidRecord)
