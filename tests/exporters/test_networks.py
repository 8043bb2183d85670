"""A pipeline folder whose index or settings are not what they should be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from exporters.networks import Networks
from profiler.errors import InputError


@pytest.mark.parametrize("entry", [5, None, [], "unet", ["diffusers"], [None, None], ["my_code", "Network"]])
def test_a_network_from_no_known_library_is_never_loaded(generate_source: Path, tmp_path: Path, entry: object) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(generate_source, folder)
    index = folder / "model_index.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), "unet": entry}))
    with pytest.raises(InputError, match=r"unet comes from .*; remote or missing code is never loaded"):
        Networks(folder).module("unet")


def test_a_network_without_its_configuration_says_so(generate_source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(generate_source, folder)
    (folder / "text_encoder" / "config.json").unlink()
    with pytest.raises(InputError, match=r"cannot load the CLIPTextModel in .*: no config\.json there"):
        Networks(folder).module("text_encoder")
