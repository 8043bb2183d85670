from __future__ import annotations

from pathlib import Path

import pytest

from exporters.foreign.wrapping import Wishes, wrap
from profiler.errors import InputError, MissingSource
from tests.exporters.foreign.graphs import scaled


def test_each_stage_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    wrap(scaled(tmp_path / "net.onnx", 1.0), Wishes(), tmp_path / "b", progress=lambda *stage: told.append(stage))
    assert [stage for stage, _, _ in told] == ["read", "copy", "run once", "manifest", "done"]


def test_a_bundle_is_never_overwritten(tmp_path: Path) -> None:
    path = scaled(tmp_path / "net.onnx", 1.0)
    wrap(path, Wishes(), tmp_path / "bundle")
    with pytest.raises(InputError, match="never overwritten"):
        wrap(path, Wishes(), tmp_path / "bundle")


def test_the_same_graph_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    path = scaled(tmp_path / "net.onnx", 1.0, (1, 3, 8, 8))
    bundles = [wrap(path, Wishes(seed=3), tmp_path / name) for name in ("a", "b")]
    assert bundles[0] == bundles[1]


@pytest.mark.parametrize("name", ["net.pt2", "net.mlmodel", "net", "net.onnx.gz"])
def test_other_endings_are_refused_with_those_that_are_known(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"They are \.onnx, \.pte, \.mlpackage"):
        wrap(tmp_path / name, Wishes(), tmp_path / "bundle")


def test_a_graph_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingSource, match="no graph at"):
        wrap(tmp_path / "net.onnx", Wishes(), tmp_path / "bundle")


@pytest.mark.parametrize("name", ["net.onnx", "net.pte"])
def test_a_folder_is_no_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="is a folder, which no"):
        wrap(tmp_path / name, Wishes(), tmp_path / "bundle")


def test_a_file_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "net.mlpackage").touch()
    with pytest.raises(InputError, match=r"is a file, which no \.mlpackage is"):
        wrap(tmp_path / "net.mlpackage", Wishes(), tmp_path / "bundle")
