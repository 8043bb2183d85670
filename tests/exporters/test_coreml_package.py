"""Packages from anywhere: read only what is inside them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exporters.coreml_package import write_package
from profiler.errors import InvalidRecord
from profiler.runner.engines.coreml_package import blob_path, open_package

MODEL, WEIGHTS = "com.apple.CoreML/model.mlmodel", "com.apple.CoreML/weights"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a few bytes for its model and weights."""
    weights = tmp_path / "weights"
    weights.write_bytes(b"weights")
    write_package(tmp_path / "a.mlpackage", b"model", weights)
    return tmp_path / "a.mlpackage"


def change(package: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    path = package / "Manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))


def entry_of(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in manifest["itemInfoEntries"].values() if entry["name"] == name)
    return found


def test_what_is_written_is_found_again(package: Path) -> None:
    found = open_package(package)
    assert found.model.read_bytes() == b"model"
    assert found.weights is not None
    assert (found.weights / "weight.bin").read_bytes() == b"weights"


def test_the_files_that_are_written_are_told(tmp_path: Path) -> None:
    files = write_package(tmp_path / "b.mlpackage", b"model", None)
    assert sorted(files) == sorted(
        path.relative_to(tmp_path / "b.mlpackage").as_posix()
        for path in (tmp_path / "b.mlpackage").rglob("*")
        if path.is_file()
    )
    assert open_package(tmp_path / "b.mlpackage").weights is None


def test_the_same_content_has_the_same_bytes(package: Path, tmp_path: Path) -> None:
    (tmp_path / "again").write_bytes(b"weights")
    write_package(tmp_path / "b.mlpackage", b"model", tmp_path / "again")
    assert (tmp_path / "b.mlpackage" / "Manifest.json").read_bytes() == (package / "Manifest.json").read_bytes()


@pytest.mark.parametrize("path", ["../outside", "/etc", "com.apple.CoreML/../../../x", "a\\b", "C:x", "a\0b", ".", ""])
@pytest.mark.parametrize("item", ["weights", "model.mlmodel"])
def test_an_item_outside_the_package_is_refused(package: Path, item: str, path: str) -> None:
    (package.parent / "outside").mkdir()
    change(package, lambda manifest: entry_of(manifest, item).update(path=path))
    with pytest.raises(InvalidRecord, match=r"unsafe path|lacks author, name or path|is not in the package"):
        open_package(package)


def test_a_link_anywhere_in_a_package_is_refused(package: Path) -> None:
    (package / "Data" / "notes").symlink_to(package.parent / "weights")
    with pytest.raises(InvalidRecord, match="is a link or a device"):
        open_package(package)


def test_a_link_in_place_of_the_package_or_its_weights_is_refused(package: Path) -> None:
    link = package.parent / "link.mlpackage"
    link.symlink_to(package)
    with pytest.raises(InvalidRecord, match="no Core ML package"):
        open_package(link)
    weights = package / "Data" / WEIGHTS
    (weights / "weight.bin").unlink()
    weights.rmdir()
    weights.symlink_to(package.parent)
    with pytest.raises(InvalidRecord, match="is a link or a device"):
        open_package(package)


def test_a_pipe_is_refused(package: Path) -> None:
    os.mkfifo(package / "Data" / "pipe")
    with pytest.raises(InvalidRecord, match="is a link or a device"):
        open_package(package)


@pytest.mark.parametrize(
    ("field", "value"), [("name", "weights"), ("name", "WEIGHTS"), ("path", WEIGHTS), ("path", f"./{WEIGHTS}")]
)
def test_two_items_of_one_name_or_path_are_refused(package: Path, field: str, value: str) -> None:
    other = {"author": "com.apple.CoreML", "name": "other", "path": "other", "description": ""}
    (package / "Data" / "other").write_bytes(b"")
    change(package, lambda manifest: manifest["itemInfoEntries"].update(another={**other, field: value}))
    with pytest.raises(InvalidRecord, match=f"two items have the {field}"):
        open_package(package)


def test_an_identifier_that_is_there_twice_is_refused(package: Path) -> None:
    path = package / "Manifest.json"
    text = path.read_text()
    path.write_text(text.replace('"rootModelIdentifier"', '"rootModelIdentifier": "x", "rootModelIdentifier"'))
    with pytest.raises(InvalidRecord, match="'rootModelIdentifier' is there twice"):
        open_package(package)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"itemInfoEntries": []}', "[" * 100_000, "\xff"])
def test_a_manifest_that_is_none_is_refused(package: Path, text: str) -> None:
    (package / "Manifest.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidRecord, match=r"Manifest\.json"):
        open_package(package)


@pytest.mark.parametrize(
    "fields",
    [
        {"rootModelIdentifier": "another"},
        {"rootModelIdentifier": None},
        {"rootModelIdentifier": ["a"]},
        {"fileFormatVersion": "2.0.0"},
        {"itemInfoEntries": {"a": 1}},
        {"itemInfoEntries": {"a": {"author": "a", "name": 1, "path": MODEL}}},
    ],
)
def test_a_manifest_that_leads_nowhere_is_refused(package: Path, fields: dict[str, Any]) -> None:
    change(package, lambda manifest: manifest.update(fields))
    with pytest.raises(InvalidRecord, match=r"Manifest\.json"):
        open_package(package)


def test_a_package_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="is not a folder"):
        open_package(tmp_path / "none.mlpackage")
    (tmp_path / "empty.mlpackage").mkdir()
    with pytest.raises(InvalidRecord, match="cannot be read"):
        open_package(tmp_path / "empty.mlpackage")


@pytest.mark.parametrize(
    "name",
    ["@model_path/../../Manifest.json", "@model_path/model.mlmodel", "/etc/passwd", "@model_path/weights/other", ""],
)
def test_a_constant_outside_the_weights_is_refused(package: Path, name: str) -> None:
    with pytest.raises(InvalidRecord, match=r"unsafe path|not in the package"):
        blob_path(open_package(package), name)


def test_a_constant_in_the_weights_is_found(package: Path) -> None:
    path = blob_path(open_package(package), "@model_path/weights/weight.bin")
    assert path == package / "Data" / WEIGHTS / "weight.bin"
