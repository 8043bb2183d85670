"""The registry."""

from __future__ import annotations

import msgspec
import pytest

from exporters.pipeline import FAMILIES
from exporters.sources import REGISTRY
from profiler import codec
from profiler.records.spec import ModelSpec

ENTRIES = sorted(REGISTRY.glob("*.toml"))


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_an_entry_reads_and_can_be_exported_by_its_family(path: object) -> None:
    spec = codec.read_toml(path, ModelSpec)  # type: ignore[arg-type]
    assert spec.name == path.stem  # type: ignore[attr-defined]
    assert spec.family in FAMILIES
    assert spec.tasks
    assert spec.height % 8 == spec.width % 8 == 0


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_a_files_that_an_entry_names_is_there(path: object) -> None:
    spec = codec.read_toml(path, ModelSpec)  # type: ignore[arg-type]
    pictures = [settings.source_image for settings in spec.tasks.values() if settings.source_image]
    for name in pictures:
        assert (REGISTRY / name).is_file()
    if spec.embedded:
        assert (REGISTRY / spec.repo / "model_index.json").is_file()


def test_an_entry_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.toml.decode(ENTRIES[0].read_bytes() + b"\n[surprise]\nx = 1\n", type=ModelSpec)
