"""Writes Core ML packages, with bytes that depend on their content only."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

from profiler.runner.engines.coreml_package import AUTHOR, DATA, FORMAT, MANIFEST

_MODEL, _WEIGHTS = f"{AUTHOR}/model.mlmodel", f"{AUTHOR}/weights"
_WEIGHT_FILE = "weight.bin"
# Item identifiers are made from paths, so that the same content has the same bytes.
_NAMESPACE = uuid.UUID("6c0f2bd1-7a3c-5b52-9d0e-3f1d8c7c2a41")


def write_package(folder: Path, model: bytes, weights: Path | None) -> list[str]:
    """Write a package from its serialised specification and its weight file, which is moved into it.

    Returns the paths of its files in it.
    """
    data = folder / DATA
    (data / AUTHOR).mkdir(parents=True)
    (data / _MODEL).write_bytes(model)
    items = {_MODEL: ("model.mlmodel", "CoreML Model Specification")}
    files = [MANIFEST, f"{DATA}/{_MODEL}"]
    if weights is not None:
        (data / _WEIGHTS).mkdir()
        shutil.move(weights, data / _WEIGHTS / _WEIGHT_FILE)
        items[_WEIGHTS] = ("weights", "CoreML Model Weights")
        files.append(f"{DATA}/{_WEIGHTS}/{_WEIGHT_FILE}")
    (folder / MANIFEST).write_text(_manifest(items))
    return files


def _manifest(items: dict[str, tuple[str, str]]) -> str:
    entries = {
        _identifier(path): {"author": AUTHOR, "description": description, "name": name, "path": path}
        for path, (name, description) in items.items()
    }
    content = {"fileFormatVersion": FORMAT, "itemInfoEntries": entries, "rootModelIdentifier": _identifier(_MODEL)}
    return json.dumps(content, indent=4, sort_keys=True) + "\n"


def _identifier(path: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, path))
