"""Finding a model's files."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError

from exporters.families.stable_diffusion import SUBFOLDERS
from exporters.pipeline import identity_of
from exporters.sources import locate, settings_sha256, source_without_weights, weights_sha256
from profiler.errors import InputError, MissingSource
from profiler.records.spec import ModelSpec
from tests.exporters.small_pipelines import save_pipeline, spec_of


def hub_spec(repo: str, revision: str | None = None) -> ModelSpec:
    spec = spec_of(Path("/nowhere"))
    return ModelSpec(
        **{field: getattr(spec, field) for field in spec.__struct_fields__} | {"repo": repo, "revision": revision}
    )


def test_a_local_folder_is_found_and_its_weights_hashed(generate_source: Path) -> None:
    located = locate(spec_of(generate_source), SUBFOLDERS)
    assert located.folder == generate_source
    assert located.source.repo == f"local:{generate_source.name}"
    assert located.source.revision is None
    assert located.source.weights_sha256 == weights_sha256(generate_source, SUBFOLDERS)


def test_the_hash_follows_the_weights_and_not_the_folder(generate_source: Path, tmp_path: Path) -> None:
    copy, other = tmp_path / "copy", tmp_path / "other"
    shutil.copytree(generate_source, copy)
    save_pipeline(other, tiny_autoencoder=False, seed=1)
    (copy / "unet" / "diffusion_pytorch_model.fp16.safetensors").write_bytes(b"another variant")
    assert weights_sha256(copy, SUBFOLDERS) == weights_sha256(generate_source, SUBFOLDERS)
    assert weights_sha256(other, SUBFOLDERS) != weights_sha256(generate_source, SUBFOLDERS)


def test_a_missing_folder_is_missing_source(tmp_path: Path) -> None:
    with pytest.raises(MissingSource, match="not there"):
        locate(spec_of(tmp_path / "none"), SUBFOLDERS)


@pytest.mark.parametrize("suffix", ["bin", "ckpt"])
def test_pickled_weights_are_refused_without_being_opened(generate_source: Path, tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(generate_source, folder)
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    weights.unlink()
    weights.with_suffix(f".{suffix}").write_bytes(b"not even a pickle")
    with pytest.raises(MissingSource, match="pickled weights") as caught:
        locate(spec_of(folder), SUBFOLDERS)
    assert "save_pretrained" in str(caught.value)


def test_a_hub_id_that_cannot_be_fetched_says_what_to_download_and_where_it_looked(tmp_path: Path) -> None:
    offline = partial(snapshot_download, local_files_only=True, cache_dir=tmp_path)
    with pytest.raises(MissingSource) as caught:
        locate(hub_spec("segmind/tiny-sd", "abc123"), SUBFOLDERS, fetch=offline)
    message = str(caught.value)
    for part in ("segmind/tiny-sd", "abc123", "hf download segmind/tiny-sd --revision abc123", "HF_HOME", "cache"):
        assert part in message


def test_a_snapshots_commit_becomes_the_revision(generate_source: Path, tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    snapshot = tmp_path / commit
    shutil.copytree(generate_source, snapshot)
    located = locate(hub_spec("someone/model"), SUBFOLDERS, fetch=lambda repo, **options: str(snapshot))
    assert (located.source.repo, located.source.revision) == ("someone/model", commit)


def test_only_named_safetensors_and_texts_of_the_needed_parts_are_asked_for() -> None:
    asked: dict[str, Any] = {}

    def fetch(repo: str, **options: Any) -> str:
        asked.update(options)
        raise LocalEntryNotFoundError("no network")

    with pytest.raises(MissingSource):
        locate(hub_spec("someone/model"), SUBFOLDERS, fetch=fetch)
    patterns = asked["allow_patterns"]
    assert "unet/diffusion_pytorch_model.safetensors" in patterns
    assert "model_index.json" in patterns
    assert not [pattern for pattern in patterns if "safety_checker" in pattern or pattern.endswith((".bin", ".py"))]


def test_a_name_that_is_no_hub_id_is_an_input_error() -> None:
    with pytest.raises(InputError, match="neither a folder here nor a hub id"):
        locate(hub_spec("not/a/hub/id"), SUBFOLDERS)


def test_another_scheduler_is_another_model_and_another_folder_is_not(generate_source: Path, tmp_path: Path) -> None:
    shutil.copytree(generate_source, tmp_path / "copy")
    before = settings_sha256(tmp_path / "copy")
    assert before == settings_sha256(generate_source)
    scheduler = tmp_path / "copy" / "scheduler" / "scheduler_config.json"
    scheduler.write_text(scheduler.read_text().replace("0.012", "0.014"))
    assert settings_sha256(tmp_path / "copy") != before


@pytest.mark.parametrize("weights", ["", "random:0"])
def test_a_changed_setting_is_not_found_in_the_cache(generate_source: Path, tmp_path: Path, weights: str) -> None:
    shutil.copytree(generate_source, tmp_path / "copy")
    spec = spec_of(tmp_path / "copy")
    before = identity_of(spec, weights)
    assert before == identity_of(spec, weights)
    scheduler = tmp_path / "copy" / "scheduler" / "scheduler_config.json"
    scheduler.write_text(scheduler.read_text().replace("0.012", "0.014"))
    assert identity_of(spec, weights) != before


def test_random_weights_for_a_folder_tell_no_path_of_this_machine(tmp_path: Path) -> None:
    assert source_without_weights(spec_of(tmp_path / "mine"), "random:0").repo == "local:mine"
