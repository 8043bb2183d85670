"""Packages put where Python finds them, as pip would: modules, and a dist-info folder with entry points."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

ONTOY = Path(__file__).parent / "ontoy"
FAMILIES, RUNTIMES, ENGINES = (f"ondevice_profiler.{kind}" for kind in ("families", "runtimes", "engines"))
Points = Mapping[str, Mapping[str, str]]
TOY: Points = {
    FAMILIES: {"toy_family": "ontoy.family"},
    RUNTIMES: {"toy": "ontoy.runtime:RUNTIME"},
    ENGINES: {"toy": "ontoy.engine:ToyEngine"},
}


def install(folder: Path, package: str, points: Points, *, code: str | None = None, version: str = "1.0") -> Path:
    """Install a package, with `code` as its only module where there is any; return the folder for the path."""
    folder.mkdir(parents=True, exist_ok=True)
    if code is not None:
        (folder / f"{package}.py").write_text(code)
    info = folder / f"{package}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in names.items())
        for group, names in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


def install_toy(folder: Path) -> Path:
    """Install the toy plug-in."""
    install(folder, "ontoy", TOY)
    shutil.copytree(ONTOY, folder / "ontoy", ignore=shutil.ignore_patterns("__pycache__"))
    return folder
