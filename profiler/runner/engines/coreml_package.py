"""Core ML packages: opened only after their manifest was checked.

coremltools and Core ML follow whatever path a package's Manifest.json names; a package from elsewhere is a folder that
anyone may have written.
"""

from __future__ import annotations

import json
import os
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from profiler.bundle_files import inside
from profiler.errors import InvalidRecord

MANIFEST, DATA, AUTHOR, FORMAT = "Manifest.json", "Data", "com.apple.CoreML", "1.0.0"
_MANIFEST_LIMIT_BYTES = 1024 * 1024


class Package(NamedTuple):
    """A package that was checked: its specification file, and the folder of its weights where it has any."""

    model: Path
    weights: Path | None


def open_package(folder: Path) -> Package:
    """Check a package and say where its parts lie.

    Raises InvalidRecord for links, for paths that lead outside, and for items that have a name or path in common.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise InvalidRecord(f"{folder} is not a folder, so no Core ML package")
    for path in _entries(folder):
        if not stat.S_ISREG(mode := path.lstat().st_mode) and not stat.S_ISDIR(mode):
            raise InvalidRecord(f"{path} is a link or a device; a Core ML package holds plain files only")
    manifest = _read_manifest(folder / MANIFEST)
    items = _items(folder, manifest)
    root = next((item for name, item in items.items() if name == manifest.get("rootModelIdentifier")), None)
    if root is None or not root.path.is_file():
        raise InvalidRecord(f"{folder / MANIFEST} names no model that is in the package")
    weights = [item.path for item in items.values() if (item.author, item.name) == (AUTHOR, "weights")]
    return Package(root.path, weights[0] if weights and weights[0].is_dir() else None)


def _entries(folder: Path) -> Iterator[Path]:
    """Walk a folder without following links."""
    for parent, folders, files in os.walk(folder, followlinks=False):
        yield from (Path(parent) / name for name in (*folders, *files))


class _Item(NamedTuple):
    author: str
    name: str
    path: Path


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MANIFEST_LIMIT_BYTES:
            raise InvalidRecord(f"{path} is larger than a manifest can be")
        manifest = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_object_of_distinct_keys)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidRecord(f"{path} cannot be read as a package's manifest: {error}") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("itemInfoEntries"), dict):
        raise InvalidRecord(f"{path} lists no items")
    if manifest.get("fileFormatVersion") != FORMAT:
        raise InvalidRecord(f"{path} has the format {manifest.get('fileFormatVersion')!r}; {FORMAT} is known")
    return manifest


def _object_of_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    twice = next((key for key in keys if keys.count(key) > 1), None) if len(set(keys)) < len(keys) else None
    if twice is not None:
        raise ValueError(f"{twice!r} is there twice")
    return dict(pairs)


def _items(folder: Path, manifest: dict[str, Any]) -> dict[str, _Item]:
    items: dict[str, _Item] = {}
    seen: set[tuple[str, str]] = set()
    for identifier, entry in manifest["itemInfoEntries"].items():
        item = _item(folder, entry)
        keys = {("name", _folded(item.name)), ("path", _folded(str(item.path)))}
        for kind, value in sorted(keys & seen):
            raise InvalidRecord(f"{folder / MANIFEST}: two items have the {kind} {value!r}")
        seen |= keys
        items[identifier] = item
    return items


def _item(folder: Path, entry: Any) -> _Item:
    texts = [entry.get(key) for key in ("author", "name", "path")] if isinstance(entry, dict) else []
    match texts:
        case [str(author), str(name), str(relative)]:
            pass
        case _:
            raise InvalidRecord(f"{folder / MANIFEST}: an item lacks author, name or path")
    path = inside(folder / DATA, relative)
    if not path.exists() or path == folder / DATA:
        raise InvalidRecord(f"{folder / MANIFEST}: {relative!r} is not in the package")
    return _Item(author, name, path)


def _folded(text: str) -> str:
    """Return what file systems that ignore case and composition make of a name."""
    return unicodedata.normalize("NFC", text).casefold()


def blob_path(package: Package, name: str) -> Path:
    """Return the file that a constant of the model names. Raises InvalidRecord outside the package's weights."""
    pure = PurePosixPath(name)
    if not name.startswith("@model_path/") or package.weights is None:
        raise InvalidRecord(f"{package.model}: a constant lies in {name!r}, which is not in the package")
    path = inside(package.model.parent, str(PurePosixPath(*pure.parts[1:])))
    if package.weights not in path.parents or not path.is_file():
        raise InvalidRecord(f"{package.model}: a constant lies in {name!r}, which is not in the package")
    return path
