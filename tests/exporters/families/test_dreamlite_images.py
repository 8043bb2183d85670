"""Whole DreamLite images, through the plan interpreter and an engine, against the stock pipelines' own loops."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from exporters.families import dreamlite
from exporters.networks import Networks
from exporters.pipeline import export
from exporters.progress import Stages
from exporters.runtimes import runtime
from exporters.schedules import tabulate
from exporters.steps import make_component
from exporters.tasks import Planner
from exporters.verify import Verifier
from profiler.records.bundle import Bundle, ImageDifference
from profiler.records.recipe import EncoderScheme, LoadPolicy, Recipe, recipe_of
from profiler.records.record import Task
from profiler.records.spec import TaskDefaults
from tests.exporters.rescheduled import changed
from tests.exporters.small_dreamlite import SIDE, Kind, save_pipeline, spec_of

# float32 against float32 in another order: what was measured is a tenth of this or less.
CLOSE = 2e-5
ENCODERS = ("token_embedding", "text_encoder", "vision_encoder")


@dataclass
class Planned:
    """One bundle's networks under other settings; both pipelines of a seed have the same weights."""

    sources: dict[Kind, Path]
    folder: Path
    bundle: Bundle

    def image_difference(
        self, kind: Kind, task: Task, settings: TaskDefaults, recipe: Recipe, remade: Iterable[str] = ()
    ) -> ImageDifference:
        """Plan a task anew, with some components exported anew, and compare its image with the source's."""
        model = dreamlite.load(Networks(self.sources[kind]), recipe)
        target, components = runtime(recipe.runtime), dict(self.bundle.components)
        for name, part in model.parts.items():
            if name in remade:
                components[name] = make_component(part, target, self.folder, recipe, Stages()).component
            else:
                part.fill(recipe)
        table = tabulate(model.scheduler, model.schedulers, [settings.steps], ())
        planner = Planner(
            model=model, recipe=recipe, table=table, components=components, pictures=self.folder, folder=self.folder
        )
        verifier = Verifier(model, components, self.folder, target.engine(), Stages())
        return verifier.verify({task: planner.plan(task, settings)}, recipe, self.bundle.verification.components)[task]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, Path]:
    root = tmp_path_factory.mktemp("dreamlite")
    return {"base": save_pipeline(root / "base", "base"), "mobile": save_pipeline(root / "mobile", "mobile")}


@pytest.fixture(scope="module")
def planned(sources: dict[Kind, Path], tmp_path_factory: pytest.TempPathFactory) -> Planned:
    folder = tmp_path_factory.mktemp("bundles") / "base"
    return Planned(sources, folder, export(spec_of(sources["base"], "base"), recipe_of(SIDE, SIDE), folder))


@pytest.fixture
def apart(planned: Planned, tmp_path: Path) -> Planned:
    """Copy the bundle for a test that writes into it."""
    shutil.copytree(planned.folder, tmp_path / "bundle")
    return Planned(planned.sources, tmp_path / "bundle", planned.bundle)


def settings_of(kind: Kind, task: Task) -> TaskDefaults:
    return spec_of(Path("/nowhere"), kind).tasks[task]


@pytest.mark.parametrize("task", ["generate", "edit"])
def test_an_image_is_the_guided_pipelines(planned: Planned, task: Task) -> None:
    found = planned.bundle.verification.images[task]
    assert found.float_image.relative < CLOSE
    assert found.uint8_max_levels <= 1
    assert found.uint8_changed_share < 1e-2


def test_generation_needs_no_picture_and_an_edit_has_its_own(planned: Planned) -> None:
    assert planned.bundle.tasks["generate"].defaults.source_image is None
    assert planned.bundle.tasks["edit"].defaults.source_image is not None


@pytest.mark.parametrize("task", ["generate", "edit"])
@pytest.mark.parametrize("policy", ["resident", "sequential"])
def test_an_image_is_the_distilled_pipelines(apart: Planned, task: Task, policy: LoadPolicy) -> None:
    recipe = recipe_of(SIDE, SIDE, load_policy=policy)
    found = apart.image_difference("mobile", task, changed(settings_of("mobile", task), steps=4), recipe)
    assert found.float_image.relative < CLOSE
    assert found.uint8_max_levels <= 1


@pytest.mark.parametrize(
    ("text", "image"),
    [(1.0, None), (3.5, None), (3.5, 1.5), (1.5, 1.5), (0.5, 2.0)],
    ids=["1", "2", "3", "2 too", "weak"],
)
def test_an_edit_with_any_guidance_is_the_guided_pipelines(apart: Planned, text: float, image: float | None) -> None:
    settings = changed(settings_of("base", "edit"), text_guidance=text, image_guidance=image, steps=2)
    found = apart.image_difference("base", "edit", settings, recipe_of(SIDE, SIDE))
    assert found.float_image.relative < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["nf4"])  # int8 goes through Core ML below
def test_the_images_of_coded_encoders_are_the_pipelines_with_the_same_weights(
    apart: Planned, scheme: EncoderScheme
) -> None:
    recipe = recipe_of(SIDE, SIDE, text_encoder=scheme)
    found = apart.image_difference("base", "edit", settings_of("base", "edit"), recipe, ENCODERS)
    assert found.float_image.relative < CLOSE
    assert found.uint8_max_levels <= 1


@pytest.mark.slow
@pytest.mark.skipif(find_spec("executorch") is None, reason="needs executorch")
def test_both_images_of_executorch_programs_are_the_pipelines(tmp_path: Path) -> None:
    source = save_pipeline(tmp_path / "smallest", "mobile", levels=1, deep=1)  # lowering is slow
    bundle = export(spec_of(source, "mobile"), recipe_of(SIDE, SIDE, runtime="executorch"), tmp_path / "made")
    for found in bundle.verification.images.values():
        assert found.float_image.relative < CLOSE
        assert found.uint8_max_levels <= 1


@pytest.mark.slow
@pytest.mark.skipif(find_spec("coremltools") is None, reason="needs coremltools")
def test_both_images_of_core_ml_packages_are_within_the_tolerance_of_half_precision(
    tmp_path: Path,
) -> None:
    source = save_pipeline(tmp_path / "small", "base", deep=1)
    recipe = recipe_of(SIDE, SIDE, runtime="coreml")
    bundle = export(spec_of(source, "base"), recipe, tmp_path / "made")
    assert {name for name, made in bundle.components.items() if made.precision == "int8"} == set(ENCODERS)
    for found in bundle.verification.images.values():
        assert 1e-4 < found.float_image.relative < recipe.relative_tolerance / 2
