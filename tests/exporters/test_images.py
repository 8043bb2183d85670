"""Whole images, through the plan interpreter and ONNX Runtime, against the stock pipelines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exporters.default_inputs import draw_test_picture
from exporters.families import stable_diffusion
from exporters.networks import Networks
from exporters.parts import ReferenceInputs
from exporters.verify import difference
from profiler.errors import BeyondTolerance
from profiler.records.spec import TaskDefaults
from tests.exporters.conftest import Exported
from tests.exporters.rescheduled import Rescheduler, changed
from tests.exporters.schedulers import SCHEDULERS
from tests.exporters.small_pipelines import SIDE, small_recipe

GENERATE = TaskDefaults(prompt="a red square", steps=5, text_guidance=3.0, seed=3)
EDIT = TaskDefaults(prompt="make it red", steps=4, text_guidance=3.0, image_guidance=1.5, seed=4)
# float32 against float32 in another order: what was measured is a tenth of this or less.
CLOSE = 2e-5


@pytest.fixture(scope="module")
def generation(generate_bundle: Exported, tmp_path_factory: pytest.TempPathFactory) -> Rescheduler:
    return Rescheduler(generate_bundle, tmp_path_factory.mktemp("images") / "generate")


@pytest.fixture(scope="module")
def editing(edit_bundle: Exported, tmp_path_factory: pytest.TempPathFactory) -> Rescheduler:
    return Rescheduler(edit_bundle, tmp_path_factory.mktemp("images") / "edit")


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "blue"},
        {"negative_prompt": "blue"},
        {"text_guidance": 3.1},
        {"image_guidance": 1.6},
        {"steps": 5},
    ],
    ids=str,
)
def test_the_small_pipeline_shows_what_a_comparison_must_notice(edit_source: Path, change: dict[str, object]) -> None:
    run = stable_diffusion.load(Networks(edit_source), small_recipe()).run_reference
    noise = np.random.default_rng(0).standard_normal((1, 4, 4, 4), dtype=np.float32)
    source = draw_test_picture(SIDE, SIDE)
    before, after = (
        run(ReferenceInputs(task="edit", settings=settings, noise=noise, source_image=source)).image
        for settings in (EDIT, changed(EDIT, **change))
    )
    assert difference(after, before).relative > 100 * CLOSE


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_image_is_the_stock_pipelines_with_any_scheduler(generation: Rescheduler, name: str) -> None:
    found = generation.image_difference("generate", GENERATE, scheduler=SCHEDULERS[name]())
    assert found.float_image.relative < CLOSE
    assert found.uint8_max_levels <= 1


@pytest.mark.parametrize("name", ["nano", "dpm_2m", "euler_ancestral"])
def test_an_edit_is_the_stock_pipelines(editing: Rescheduler, name: str) -> None:
    found = editing.image_difference("edit", EDIT, scheduler=SCHEDULERS[name]())
    assert found.float_image.relative < CLOSE


@pytest.mark.parametrize(
    ("text", "image"), [(3.0, 1.0), (3.0, 1.5), (1.0, 1.5), (7.5, 2.0)], ids=["2 branches", "3", "1", "strong"]
)
def test_an_edit_with_any_guidance_is_the_stock_pipelines(editing: Rescheduler, text: float, image: float) -> None:
    found = editing.image_difference("edit", changed(EDIT, text_guidance=text, image_guidance=image))
    assert found.float_image.relative < CLOSE


@pytest.mark.parametrize("image", [None, 1.0, 1.3])
def test_generation_through_an_edit_model_starts_from_grey(editing: Rescheduler, image: float | None) -> None:
    found = editing.image_difference("generate", changed(GENERATE, image_guidance=image))
    assert found.float_image.relative < CLOSE


@pytest.mark.parametrize("change", [{"text_guidance": 0.0}, {"negative_prompt": "blue"}, {"steps": 1}, {"steps": 12}])
def test_generation_with_other_settings_is_the_stock_pipelines(
    generation: Rescheduler, change: dict[str, object]
) -> None:
    assert generation.image_difference("generate", changed(GENERATE, **change)).float_image.relative < CLOSE


def test_loading_around_use_gives_the_same_image(editing: Rescheduler) -> None:
    resident = editing.image_difference("edit", EDIT)
    sequential = editing.image_difference("edit", EDIT, recipe=small_recipe(load_policy="sequential"))
    assert sequential == resident


def test_an_image_further_off_than_the_recipe_allows_is_an_error(generation: Rescheduler) -> None:
    with pytest.raises(BeyondTolerance, match="generate image"):
        generation.image_difference("generate", GENERATE, recipe=small_recipe(relative_tolerance=1e-12))
