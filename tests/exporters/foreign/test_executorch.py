from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("executorch")

import torch
from torch import Tensor, nn

from exporters.foreign.wrapping import Wishes, wrap
from profiler.bundle_files import load_plan
from profiler.errors import InvalidRecord
from tests.exporters.foreign.graphs import SIDE, save_pte
from tests.exporters.foreign.wrapped import media_of, refused


class Scaled(nn.Module):
    """Turns noise into an image: its absolute value times a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, sample: Tensor) -> Tensor:
        return sample.abs() * self.factor


class Looks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 3)

    def forward(self, ids: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        found = self.table(ids) * scale
        return found, found.sum(-1)


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pte(tmp_path_factory.mktemp("pte") / "net.pte", Scaled(20.0), torch.rand(1, 3, SIDE, SIDE))


def test_a_program_is_copied_and_described_by_its_own_signature(picture: Path, tmp_path: Path) -> None:
    bundle = wrap(picture, Wishes(), tmp_path / "bundle")
    component = bundle.components["model"]
    assert (tmp_path / "bundle" / component.files[0]).read_bytes() == picture.read_bytes()
    assert [(p.name, p.shape) for p in component.functions["run"].inputs] == [("input_0", (1, 3, SIDE, SIDE))]
    assert media_of(tmp_path / "bundle") == "image"
    assert (bundle.recipe.runtime, bundle.recipe.height) == ("executorch", SIDE)
    assert bundle.verification.engine == f"executorch {bundle.tools['executorch']}"
    assert "A program does not tell how many weights it has" in component.notes[0]


def test_a_program_with_several_tensors_is_run_on_what_is_given(tmp_path: Path) -> None:
    example = torch.tensor([[1, 2]], dtype=torch.int32), torch.ones(1)
    path = save_pte(tmp_path / "net.pte", Looks(), *example)
    np.savez(tmp_path / "inputs.npz", input_0=example[0].numpy())
    bundle = wrap(path, Wishes(inputs=tmp_path / "inputs.npz", output="output_1"), tmp_path / "bundle")
    assert bundle.tasks["generate"].defaults.made_up == ("input_1",)
    assert media_of(tmp_path / "bundle") == "tensor"
    (call, _) = load_plan(tmp_path / "bundle", bundle, "generate").body
    assert call.emit == {"output_1": "output"}  # type: ignore[union-attr]


def test_another_range_leaves_a_tensor(picture: Path, tmp_path: Path) -> None:
    bundle = wrap(picture, Wishes(values=(0.0, 1.0)), tmp_path / "bundle")
    assert media_of(tmp_path / "bundle") == "tensor"
    assert "nothing here brings it to 0–255" in bundle.components["model"].notes[-1]


def test_an_image_beyond_pixels_is_a_tensor(tmp_path: Path) -> None:
    path = save_pte(tmp_path / "net.pte", Scaled(1000.0), torch.rand(1, 3, SIDE, SIDE))
    bundle = wrap(path, Wishes(), tmp_path / "bundle")
    assert media_of(tmp_path / "bundle") == "tensor"
    assert "beyond an image's 0–255" in bundle.components["model"].notes[-1]


def test_other_types_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = save_pte(tmp_path / "net.pte", Scaled(1.0), torch.zeros(2, dtype=torch.float64))
    told = refused(path, tmp_path)
    assert "input_0 is float64[2]; a runner gives and takes float32 and int32" in told
    assert "casts at its boundary" in told


def test_shapes_are_for_onnx(picture: Path, tmp_path: Path) -> None:
    assert "has its shapes for good" in refused(picture, tmp_path, shapes={"input_0": (1,)})


@pytest.mark.parametrize("data", [b"", b"this is no program"])
def test_a_file_that_is_no_program_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "net.pte").write_bytes(data)
    assert "is no ExecuTorch program that loads here" in refused(tmp_path / "net.pte", tmp_path, InvalidRecord)


def test_a_linked_program_is_refused(picture: Path, tmp_path: Path) -> None:
    (tmp_path / "link.pte").symlink_to(picture)
    assert "is a link" in refused(tmp_path / "link.pte", tmp_path)
