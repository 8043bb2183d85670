"""The registry's networks, built without their weights."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import diffusers
import numpy as np
import pytest
import transformers
from msgspec.structs import replace

from exporters import architectures
from exporters.families import stable_diffusion
from profiler import catalog
from profiler.errors import InputError
from profiler.records.spec import ModelSpec
from tests.records_for_tests import make_model_spec

DESCRIBED = {name: spec for name, spec in catalog.models().items() if spec.parts}
# What stock pipelines take that is no part of making an image, and that no family loads.
_LEFT_OUT = {"safety_checker", "feature_extractor", "image_encoder", "requires_safety_checker"}


@pytest.fixture(params=DESCRIBED, scope="module")
def described(request: pytest.FixtureRequest) -> ModelSpec:
    return DESCRIBED[request.param]


@pytest.fixture(scope="module")
def folder(described: ModelSpec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("pipeline")
    architectures.write_configs(described, written)
    return written


@pytest.mark.parametrize("name", architectures.architectures())
def test_a_network_is_built_without_its_weights_and_with_the_buffers_no_checkpoint_holds(name: str) -> None:
    network = architectures.build_on_meta(architectures.config_of(name))
    assert {tensor.device.type for tensor in network.parameters()} == {"meta"}
    held = set(network.state_dict())
    assert all(buffer.device.type == "cpu" for key, buffer in network.named_buffers() if key not in held)
    assert not network.training
    assert not any(tensor.requires_grad for tensor in network.parameters())


def test_a_buffer_that_no_checkpoint_holds_has_its_values() -> None:
    network = architectures.build_on_meta(architectures.config_of("gemma-2-2b"))
    frequencies = dict(network.named_buffers())["rotary_emb.inv_freq"].numpy()
    np.testing.assert_allclose(frequencies, 10000.0 ** (-np.arange(0, 256, 2) / 256), rtol=1e-6)


@pytest.mark.parametrize("name", architectures.schedulers())
def test_a_scheduler_is_one_of_diffusers_and_can_be_set_up(name: str) -> None:
    settings = architectures.scheduler_of(name)
    scheduler = getattr(diffusers, settings["_class_name"]).from_config(settings)
    shift = {"mu": 0.8} if settings.get("use_dynamic_shifting") else {}
    scheduler.set_timesteps(2, **shift)
    assert len(scheduler.timesteps) >= 2


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"no architecture is called 'clip-x'; registered are bk-sdm-base-unet, .*clip-l"
    ):
        architectures.config_of("clip-x")
    with pytest.raises(InputError, match=r"no scheduler is called '\.\./nano'; registered are .*pndm-sd"):
        architectures.scheduler_of("../nano")


@pytest.mark.parametrize(
    "config",
    [{"_class_name": "MyUNet"}, {"_class_name": "StableDiffusionPipeline"}, {"architectures": ["my.Encoder"]}, {}],
)
def test_code_from_elsewhere_is_never_built(config: dict[str, object]) -> None:
    with pytest.raises(InputError, match="code from elsewhere is never loaded"):
        architectures.build_on_meta(config)


def test_a_written_folder_holds_settings_only(described: ModelSpec, folder: Path) -> None:
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    networks = {f"{name}/config.json" for name in described.parts}
    assert files == {"model_index.json", "scheduler/scheduler_config.json", *networks}


def test_a_written_folder_names_what_its_pipeline_takes(described: ModelSpec, folder: Path) -> None:
    index = json.loads((folder / "model_index.json").read_text())
    taken = set(inspect.signature(getattr(diffusers, index["_class_name"])).parameters)
    named = {name for name in index if not name.startswith("_")}
    assert named == taken - _LEFT_OUT
    libraries = {"diffusers": diffusers, "transformers": transformers}
    assert all(hasattr(libraries[library], kind) for library, kind in (index[name] for name in named))


def test_a_written_folder_reads_as_a_downloaded_one_does(described: ModelSpec, folder: Path) -> None:
    index = json.loads((folder / "model_index.json").read_text())
    for name in described.parts:
        library, kind = index[name]
        if library == "diffusers":
            settings = getattr(diffusers, kind).load_config(folder, subfolder=name)
            assert settings["_class_name"] == kind
        else:
            settings = transformers.AutoConfig.from_pretrained(folder / name, local_files_only=True)
            assert settings.architectures == [kind]
    scheduler = getattr(diffusers, index["scheduler"][1]).from_pretrained(folder, subfolder="scheduler")
    assert type(scheduler).__name__ == index["scheduler"][1]


@pytest.mark.parametrize("name", ["sd-1.5", "sd-turbo", "bk-sdm-tiny"])
def test_a_family_knows_a_written_folder(name: str, tmp_path: Path) -> None:
    architectures.write_configs(DESCRIBED[name], tmp_path)
    assert set(stable_diffusion.defaults_of(tmp_path)[1]) == {"generate"}


def test_an_entry_that_does_not_describe_its_networks_has_no_folder(tmp_path: Path) -> None:
    bare = make_model_spec()
    lacking = [bare, replace(DESCRIBED["sd-1.5"], scheduler=None), replace(DESCRIBED["sd-1.5"], pipeline=None)]
    for spec in lacking:
        with pytest.raises(InputError, match="does not describe this model's networks"):
            architectures.write_configs(spec, tmp_path)
    assert not list(tmp_path.iterdir())
