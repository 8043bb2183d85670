"""Small pipelines and their bundles, each made once for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("torch")
pytest.importorskip("diffusers")

import torch

from exporters.pipeline import export
from profiler.records.bundle import Bundle
from tests.exporters.read_once import read_once
from tests.exporters.small_pipelines import Kind, save_pipeline, small_recipe, spec_of


class Exported(NamedTuple):
    """A bundle and the pipeline folder that it was made from."""

    source: Path
    folder: Path
    bundle: Bundle
    progress: list[tuple[str, int, int]]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    # The networks are so small that a second thread only waits for the first.
    torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def _torchs_tables() -> Iterator[None]:
    with read_once():
        yield


@pytest.fixture(scope="session")
def generate_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pipeline(tmp_path_factory.mktemp("source") / "generate", tiny_autoencoder=False)


@pytest.fixture(scope="session")
def edit_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_pipeline(tmp_path_factory.mktemp("source") / "edit", "edit")


@pytest.fixture(scope="session")
def generate_bundle(generate_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Export a StableDiffusionPipeline with a KL autoencoder."""
    return _export(generate_source, tmp_path_factory.mktemp("bundle") / "generate", "generate")


@pytest.fixture(scope="session")
def edit_bundle(edit_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Export an InstructPix2Pix pipeline with a tiny autoencoder, for both tasks."""
    return _export(edit_source, tmp_path_factory.mktemp("bundle") / "edit", "generate", "edit")


def _export(source: Path, folder: Path, *tasks: Kind) -> Exported:
    told: list[tuple[str, int, int]] = []
    spec = spec_of(source, *tasks, edit={"image_guidance": 1.5})
    bundle = export(spec, small_recipe(), folder, progress=lambda *stage: told.append(stage))
    return Exported(source, folder, bundle, told)
