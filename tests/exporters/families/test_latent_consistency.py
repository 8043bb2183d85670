"""Latent consistency models: Stable Diffusion with guidance as an input of its U-Net, in a few steps."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from diffusers import LatentConsistencyModelPipeline

from exporters.architectures import write_configs
from exporters.families import stable_diffusion as family
from exporters.networks import Networks
from exporters.parts import Model
from exporters.pipeline import export
from exporters.verify import difference
from exporters.weights import RandomWeights
from profiler import catalog
from profiler.errors import InputError
from profiler.records.spec import TaskDefaults
from tests.exporters.conftest import Exported
from tests.exporters.rescheduled import Rescheduler, changed
from tests.exporters.small_pipelines import build_tokenizer, save_distilled, small_recipe, spec_of


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_distilled(tmp_path_factory.mktemp("source") / "distilled")


@pytest.fixture(scope="module")
def model(source: Path) -> Model:
    return family.load(Networks(source), small_recipe())


@pytest.fixture(scope="module")
def bundle(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("bundle") / "distilled"
    return Exported(source, folder, export(spec_of(source, text_guidance=8.5), small_recipe(), folder), [])


def settings(**options: object) -> TaskDefaults:
    return changed(spec_of(Path(), text_guidance=8.5).tasks["generate"], **options)


@pytest.mark.parametrize("guidance", [1.0, 8.5, 14.0])
def test_the_network_sees_the_pipelines_own_embedding(model: Model, source: Path, guidance: float) -> None:
    stock = LatentConsistencyModelPipeline.from_pretrained(source, safety_checker=None)
    latents, timestep, states, _ = model.parts["denoiser"].graphs["predict"].inputs.values()
    (scale,) = model.condition("generate", settings(text_guidance=guidance)).constants.values()
    width = stock.unet.config.time_cond_proj_dim
    with torch.no_grad():
        embedded = stock.get_guidance_scale_embedding(torch.tensor(guidance - 1).repeat(1), embedding_dim=width)
        expected = stock.unet(latents, timestep, timestep_cond=embedded, encoder_hidden_states=states).sample
        found = model.parts["denoiser"].graphs["predict"].module(latents, timestep, states, torch.tensor(scale.values))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_guidance_keeps_its_angles_where_the_network_computes_in_half_precision(model: Model) -> None:
    pytest.importorskip("executorch")
    from exporters.runtimes.executorch_half import HalfInside

    graph = model.parts["denoiser"].graphs["predict"]
    with torch.no_grad():
        (found,) = HalfInside(graph.module)(*graph.inputs.values())
    assert difference(found.numpy(), graph.run()[0].numpy()).relative < 3e-3


def test_the_image_is_the_pipelines(bundle: Exported) -> None:
    found = bundle.bundle.verification.images["generate"]
    assert found.float_image.relative < 5e-6
    assert found.uint8_max_levels <= 1
    assert bundle.bundle.components["guide_step"].functions.keys() == {"start", "guide_1"}


@pytest.mark.parametrize(("steps", "guidance"), [(1, 8.5), (2, 1.0), (8, 3.0)])
def test_so_it_is_with_other_steps_and_guidance(bundle: Exported, tmp_path: Path, steps: int, guidance: float) -> None:
    rescheduler = Rescheduler(bundle, tmp_path / "again")
    found = rescheduler.image_difference("generate", settings(steps=steps, text_guidance=guidance))
    assert found.float_image.relative < 5e-6
    assert found.uint8_max_levels <= 1


@pytest.mark.parametrize("options", [{"negative_prompt": "blur"}, {"image_guidance": 1.5}])
def test_what_the_pipeline_does_not_have_is_refused(model: Model, options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="no negative prompt and no image guidance"):
        model.condition("generate", settings(**options))


def test_a_pipeline_whose_network_takes_no_guidance_is_refused(tmp_path: Path) -> None:
    folder = save_distilled(tmp_path / "plain", time_cond_proj_dim=None)
    with pytest.raises(InputError, match="time_cond_proj_dim=None is no LatentConsistencyModelPipeline's"):
        family.load(Networks(folder), small_recipe())


def test_it_only_generates(source: Path) -> None:
    assert set(family.defaults_of(source)[1]) == {"generate"}


def test_the_registered_models_parts_are_as_large_as_published(tmp_path: Path) -> None:
    write_configs(catalog.model("lcm-dreamshaper-v7"), tmp_path)
    build_tokenizer().save_pretrained(tmp_path / "tokenizer")
    model = family.load(Networks(tmp_path, RandomWeights(0)), small_recipe(height=512, width=512))
    assert model.parts["text_encoder"].parameters == 123_060_480
    assert model.parts["denoiser"].parameters == 859_602_884
    assert model.latents == (4, 64, 64)
