"""What a bundle ships to run on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from safetensors.numpy import load_file

from exporters import default_inputs
from exporters.default_inputs import draw_test_picture, job_inputs, source_picture, words_of
from exporters.families import stable_diffusion
from exporters.networks import Networks
from exporters.parts import Model
from profiler import bundle_files
from profiler.errors import MissingSource
from profiler.records.bundle import PromptForm
from profiler.records.plan import Guidance, Plan, Port
from profiler.records.spec import TaskDefaults
from tests.exporters.conftest import Exported
from tests.exporters.small_pipelines import SIDE, small_recipe

EDIT = TaskDefaults(prompt="a red square", steps=4, text_guidance=3.0, seed=3)


@pytest.fixture(scope="module")
def model(edit_source: Path) -> Model:
    return stable_diffusion.load(Networks(edit_source), small_recipe())


def plan_with(step_noise_rounds: int) -> Plan:
    ports = (
        Port(name="noise", dtype="float32", shape=(1, 4, 4, 4)),
        Port(name="step_noise", dtype="float32", shape=(step_noise_rounds, 4, 4, 4)),
    )
    guidance = Guidance(text=1.0)
    return Plan(
        task="generate", scheduler="Any", steps=4, guidance=guidance, inputs=ports, constants={}, prepare=(), body=()
    )


@pytest.mark.parametrize("task", ["generate", "edit"])
def test_the_tensors_are_what_the_plans_ports_say(edit_bundle: Exported, task: str) -> None:
    plan = bundle_files.load_plan(edit_bundle.folder, edit_bundle.bundle, task)  # type: ignore[arg-type]
    tensors = load_file(edit_bundle.folder / edit_bundle.bundle.tasks[task].defaults.path)  # type: ignore[index]
    assert {name: (str(value.dtype), value.shape) for name, value in tensors.items()} == {
        port.name: (port.dtype, port.shape) for port in plan.inputs
    }


def test_noise_is_numpys_own_for_the_seed(edit_bundle: Exported) -> None:
    defaults = edit_bundle.bundle.tasks["edit"].defaults
    noise = load_file(edit_bundle.folder / defaults.path)["noise"]
    generator = np.random.Generator(np.random.PCG64(defaults.seed))
    np.testing.assert_array_equal(noise, generator.standard_normal(noise.shape, dtype=np.float32))


def test_more_rounds_keep_the_noise_that_fewer_had(tmp_path: Path) -> None:
    few, many = (
        job_inputs(plan_with(rounds), EDIT, None, words_of(tmp_path / "none", PromptForm())) for rounds in (3, 8)
    )
    np.testing.assert_array_equal(few["noise"], many["noise"])
    np.testing.assert_array_equal(few["step_noise"], many["step_noise"][:3])


def test_an_edit_ships_its_source_as_tensor_and_as_picture(edit_bundle: Exported) -> None:
    defaults = edit_bundle.bundle.tasks["edit"].defaults
    assert defaults.source_image is not None
    picture = np.array(PIL.Image.open(edit_bundle.folder / defaults.source_image))
    tensor = load_file(edit_bundle.folder / defaults.path)["source_image"]
    np.testing.assert_array_equal(tensor[0].transpose(1, 2, 0), picture)
    assert edit_bundle.bundle.tasks["generate"].defaults.source_image is None


def test_constants_hold_the_encoded_grey_and_zeros(edit_bundle: Exported, model: Model) -> None:
    constants = load_file(edit_bundle.folder / "constants.safetensors")
    assert set(constants) == {"blank_latents", "zero_latents"}
    assert constants["blank_latents"].shape == (1, *model.latents)
    assert np.abs(constants["blank_latents"]).max() > 0
    assert not constants["zero_latents"].any()


def test_a_source_image_of_another_size_is_fitted(model: Model, tmp_path: Path) -> None:
    PIL.Image.new("RGBA", (100, 80), (10, 200, 30, 255)).save(tmp_path / "green.png")
    settings = TaskDefaults(prompt="x", steps=4, text_guidance=3.0, source_image="green.png")
    picture = source_picture("edit", settings, tmp_path, model)
    assert picture is not None
    assert picture.shape == (SIDE, SIDE, 3)
    assert (picture == (10, 200, 30)).all()


def test_a_missing_source_image_is_named(model: Model, tmp_path: Path) -> None:
    settings = TaskDefaults(prompt="x", steps=4, text_guidance=3.0, source_image="none.png")
    with pytest.raises(MissingSource, match=r"none\.png"):
        source_picture("edit", settings, tmp_path, model)


def test_generation_has_no_source_picture(model: Model, tmp_path: Path) -> None:
    assert source_picture("generate", EDIT, tmp_path, model) is None


def test_the_drawn_picture_is_not_flat() -> None:
    picture = draw_test_picture(48, 32)
    assert picture.shape == (48, 32, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 100


def test_a_model_without_a_source_ships_no_constants(generate_source: Path, tmp_path: Path) -> None:
    plain = stable_diffusion.load(Networks(generate_source), small_recipe())
    default_inputs.write_constants(plain, tmp_path / "constants.safetensors")
    assert not list(tmp_path.iterdir())
