"""What `profile export` prints of a bundle."""

from __future__ import annotations

import shlex
import shutil
from io import StringIO
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from profiler import catalog
from profiler.bundle_files import load_manifest
from profiler.cli.exporting import _table, _tell, _to_know
from profiler.exporting import Exported
from profiler.records.bundle import Bundle, Verification


def printed(bundle: Bundle) -> list[str]:
    console = Console(file=StringIO(), width=120)
    console.print(_table(bundle))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_errors_stand_beside_their_components(small_bundle: Path) -> None:
    bundle = load_manifest(small_bundle)
    rows = {line.split()[0]: line for line in printed(bundle)}
    for name, difference in bundle.verification.components.items():
        assert f"{difference.relative:.2g}" in rows[name]
    assert list(_to_know(bundle, None)) == []


def test_a_bundle_that_was_not_verified_says_so_and_why(small_bundle: Path) -> None:
    unverified = Verification(reference="x", components={}, images={}, not_run="no such device")
    bundle = replace(load_manifest(small_bundle), verification=unverified)
    _, *rows = printed(bundle)
    assert len(rows) == len(bundle.components)
    assert all("not verified" in row for row in rows)
    assert list(_to_know(bundle, None)) == ["not verified: no such device"]


def test_a_default_recipe_says_that_it_is_one_and_whether_it_is_experimental(small_bundle: Path) -> None:
    bundle, usual = load_manifest(small_bundle), catalog.model("dreamlite").recipes["coreml"]
    (line,) = _to_know(bundle, usual)
    assert line.startswith(f"recipe: {bundle.model}'s experimental default for onnx. ")
    assert "Neural Engine" in line


def test_images_that_were_not_compared_say_why(small_bundle: Path) -> None:
    bundle = load_manifest(small_bundle)
    partly = replace(bundle, verification=replace(bundle.verification, images={}, images_not_run="random weights"))
    assert list(_to_know(partly, None)) == ["whole images were not compared: random weights"]


def test_the_next_command_can_be_pasted_whatever_the_folders_name(
    small_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my 'first' bundle"
    shutil.copytree(small_bundle, folder)
    assert _tell(Exported(folder, made=True, usual=None), as_json=False) == 0
    *_, command = capsys.readouterr().out.splitlines()
    assert shlex.split(command.removeprefix("measure it: ")) == ["profile", "--bundle", str(folder)]
