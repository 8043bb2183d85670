"""Specs for pipelines that have no registry entry."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from exporters.unregistered import spec_for
from profiler.errors import InputError
from tests.exporters.small_dreamlite import save_pipeline
from tests.exporters.small_pipelines import SIDE
from tests.exporters.small_sana import save_sana


def test_a_folder_is_described_by_its_own_files(edit_source: Path) -> None:
    spec = spec_for(str(edit_source))
    assert (spec.name, spec.repo) == (edit_source.name, str(edit_source))
    assert (spec.height, spec.width) == (SIDE, SIDE)
    assert set(spec.tasks) == {"edit"}
    assert spec.licence.commercial_use == "unknown"


def test_a_generation_pipeline_gets_the_generation_task(generate_source: Path) -> None:
    assert set(spec_for(str(generate_source)).tasks) == {"generate"}


@pytest.mark.parametrize("name", ["/none/such", "a/b/c", "./x/y"])
def test_what_is_neither_folder_nor_hub_id_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no folder here, and no hub id"):
        spec_for(name)


def test_a_pipeline_of_any_family_is_described(tmp_path: Path) -> None:
    dreamlite, sana = save_pipeline(tmp_path / "dreamlite", "base"), save_sana(tmp_path / "sana")
    assert (spec_for(str(dreamlite)).family, set(spec_for(str(dreamlite)).tasks)) == ("dreamlite", {"generate", "edit"})
    assert (spec_for(str(sana)).family, spec_for(str(sana)).tasks["generate"].steps) == ("sana_sprint", 2)


def test_a_pipeline_of_no_family_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    with pytest.raises(InputError, match=r"holds a FluxPipeline; supported are .*SanaSprintPipeline.*StableDiffusion"):
        spec_for(str(tmp_path))


@pytest.mark.parametrize("side", [0, -64, [16, 8], "big", None])
def test_a_size_that_no_image_has_is_refused(generate_source: Path, tmp_path: Path, side: object) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(generate_source, folder)
    config = folder / "unet" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "sample_size": side}))
    with pytest.raises(InputError, match="names no square sample_size"):
        spec_for(str(folder))
