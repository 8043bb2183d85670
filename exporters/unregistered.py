"""A registry entry made up for a pipeline folder or hub id that has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from exporters.families import stable_diffusion
from exporters.parts import read_json
from exporters.sources import fetch_snapshot
from profiler.errors import InputError
from profiler.records.record import Task
from profiler.records.spec import Licence, ModelSpec, TaskDefaults

_DEFAULTS: dict[Task, TaskDefaults] = {
    "generate": TaskDefaults(prompt="a red apple on a wooden table, photograph", steps=20, text_guidance=7.5),
    "edit": TaskDefaults(prompt="make it look like winter", steps=20, text_guidance=7.5, image_guidance=1.5),
}


def spec_for(name: str) -> ModelSpec:
    """Describe the pipeline in a folder, or the one with a hub id. Raises InputError or MissingSource."""
    folder = Path(name).expanduser()
    if folder.is_dir():
        return _spec(folder.absolute(), str(folder.absolute()), folder.absolute().name)
    if name.count("/") != 1 or name.startswith((".", "/", "~")):
        raise InputError(
            f"{name!r} is no model's name, no folder here, and no hub id",
            hint="Names: profile models. A hub id looks like owner/name.",
        )
    return _spec(fetch_snapshot(name, None, stable_diffusion.SUBFOLDERS), name, name.split("/")[1])


def _spec(folder: Path, repo: str, title: str) -> ModelSpec:
    tasks = stable_diffusion.tasks_of(folder)
    size = _pixels(folder)
    return ModelSpec(
        name=title,
        title=title,
        family=stable_diffusion.NAME,
        repo=repo,
        licence=Licence(name="unknown", commercial_use="unknown", source="not in the registry; see the model's card"),
        height=size,
        width=size,
        tasks={task: _DEFAULTS[task] for task in tasks},
    )


def _pixels(folder: Path) -> int:
    """Return the image size the U-Net was made for: its latent size times the autoencoder's scale."""
    unet, vae = _config(folder / "unet"), _config(folder / "vae")
    blocks = vae.get("block_out_channels") or vae.get("encoder_block_out_channels")
    sample = unet.get("sample_size")
    if not isinstance(sample, int) or not blocks:
        raise InputError(f"{folder}: unet/config.json names no square sample_size, or vae/config.json no blocks")
    return int(sample * 2 ** (len(blocks) - 1))


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise InputError(f"{path} is not there; is this a diffusers pipeline folder?")
    return read_json(path)
