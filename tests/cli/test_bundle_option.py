"""`--bundle`: a folder that is a bundle, and says what is wrong where it is none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from profiler.bundle_files import MANIFEST
from profiler.cli import main
from tests.cli.conftest import LEAST


def _spoil_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"schema_version": 1, "model": ')


def _change_a_file(folder: Path) -> None:
    path = folder / "components" / "decoder.decode.onnx"
    path.write_bytes(path.read_bytes() + b"\0")


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "is not there; a bundle is a folder that holds bundle.json"),
    "no manifest": (lambda folder: (folder / MANIFEST).unlink(), "holds no bundle: no bundle.json there"),
    "a broken manifest": (_spoil_manifest, "bundle.json: not a valid Bundle"),
    "a missing file": (
        lambda folder: (folder / "components" / "decoder.decode.onnx").unlink(),
        "decoder.decode.onnx is missing from the bundle",
    ),
    "a changed file": (_change_a_file, "decoder.decode.onnx is not the file its manifest names"),
}


def test_a_bundle_is_measured_by_its_folder(
    small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--bundle", str(small_bundle), "--store", str(tmp_path / "store"), "--json", *LEAST]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["outcome"], summary["model"]) == ("completed", "small")


def test_a_dry_run_of_a_bundle_names_its_folder(
    small_bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(small_bundle.parent)
    assert main(["--bundle", small_bundle.name, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bundle"] == str(small_bundle)


@pytest.mark.parametrize(("spoil", "words"), SPOILT.values(), ids=list(SPOILT))
def test_a_folder_that_is_no_sound_bundle_says_why(
    small_bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], object],
    words: str,
) -> None:
    folder = shutil.copytree(small_bundle, tmp_path / "bundle")
    spoil(folder)
    assert main(["--bundle", str(folder), "--store", str(tmp_path / "store"), *LEAST]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert words in told
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("name", ["x" * 300, "~nobody-of-this-name", " "])
def test_a_name_that_no_folder_has_is_not_there(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bundle", name, "--dry-run"]) == 2
    assert "is not there" in " ".join(capsys.readouterr().err.split())


def test_a_model_s_name_is_no_bundle(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--bundle", "nano", "--dry-run", "--store", str(tmp_path)]) == 2
    assert "nano is not there; a bundle is a folder" in capsys.readouterr().err


def test_a_file_is_no_bundle(small_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bundle", str(small_bundle / MANIFEST), "--dry-run"]) == 2
    assert "is a file; a bundle is a folder" in " ".join(capsys.readouterr().err.split())


def test_a_pipeline_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model_index.json").write_text("{}")
    assert main(["--bundle", str(tmp_path), "--dry-run"]) == 2
    assert f"Export it: --model {tmp_path}" in " ".join(capsys.readouterr().err.split())


def test_a_bundle_made_in_another_way_is_refused(small_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bundle", str(small_bundle), "--precision", "fp16", "--dry-run"]) == 2
    assert "was not made with precision fp16" in " ".join(capsys.readouterr().err.split())


def test_model_and_bundle_together_are_a_usage_error(small_bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bundle", str(small_bundle), "--model", "nano", "--dry-run"]) == 2
    assert "--model and --bundle" in capsys.readouterr().err
