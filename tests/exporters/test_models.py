"""The registry."""

from __future__ import annotations

import msgspec
import pytest

from exporters.architectures import architectures, origins, schedulers
from exporters.families import family_of
from exporters.sources import REGISTRY
from profiler import codec
from profiler.records.recipe import recipe_of
from profiler.records.spec import DefaultRecipe, ModelSpec

ENTRIES = sorted(REGISTRY.glob("*.toml"))
SPECS = [codec.read_toml(path, ModelSpec) for path in ENTRIES]
FROM_HUB = [spec for spec in SPECS if not spec.embedded]
RECIPES = {f"{spec.name}/{runtime}": recipe for spec in SPECS for runtime, recipe in spec.recipes.items()}
LARGE = 10**9


@pytest.mark.parametrize("path", ENTRIES, ids=lambda path: path.stem)
def test_an_entry_reads_and_can_be_exported_by_its_family(path: object) -> None:
    spec = codec.read_toml(path, ModelSpec)  # type: ignore[arg-type]
    assert spec.name == path.stem  # type: ignore[attr-defined]
    assert family_of(spec.family).SUBFOLDERS.networks
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


@pytest.mark.parametrize("spec", FROM_HUB, ids=lambda spec: spec.name)
def test_a_model_from_the_hub_is_described_without_its_weights(spec: ModelSpec) -> None:
    assert spec.pipeline
    assert spec.scheduler in schedulers()
    assert {part.architecture for part in spec.parts.values()} <= set(architectures())
    assert spec.tokenizers
    assert set(spec.recipes) == {"onnx", "executorch", "coreml"}


def test_no_architecture_or_scheduler_is_registered_for_nothing() -> None:
    assert {part.architecture for spec in SPECS for part in spec.parts.values()} == set(architectures())
    assert {spec.scheduler for spec in FROM_HUB} == set(schedulers())


def test_everything_registered_says_where_it_is_from() -> None:
    known = origins()
    assert set(known.architectures) == set(architectures())
    assert set(known.schedulers) == set(schedulers())
    assert all(origin.source for origin in (*known.architectures.values(), *known.schedulers.values()))


@pytest.mark.parametrize("spec", FROM_HUB, ids=lambda spec: spec.name)
def test_a_model_says_so_where_settings_were_inferred_or_their_file_was_not_seen(spec: ModelSpec) -> None:
    known = origins()
    names = [part.architecture for part in spec.parts.values()]
    statuses = {known.architectures[name].status for name in names} | {known.schedulers[spec.scheduler or ""].status}
    assert spec.configs == ("inferred" if "inferred" in statuses else "published")
    assert spec.configs_note or statuses == {"seen"}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_default_recipe_has_a_reason_and_a_way_out_of_what_may_fail(recipe: DefaultRecipe) -> None:
    assert recipe.note
    if recipe.experimental:
        assert recipe.alternative is not None
        assert recipe.alternative.text_encoder != recipe.text_encoder


@pytest.mark.parametrize("spec", FROM_HUB, ids=lambda spec: spec.name)
def test_core_ml_holds_four_bits_away_from_the_neural_engine_only(spec: ModelSpec) -> None:
    recipe = spec.recipes["coreml"]
    made = recipe_of(8, 8, runtime="coreml", precision=recipe.precision, text_encoder=recipe.text_encoder)
    assert recipe.compute_unit == made.compute_unit
    assert recipe.experimental == (recipe.text_encoder == "nf4")


@pytest.mark.parametrize("spec", FROM_HUB, ids=lambda spec: spec.name)
def test_a_large_model_is_never_exact_by_default_and_a_small_one_is(spec: ModelSpec) -> None:
    exact = [spec.recipes[runtime].text_encoder == "fp32" for runtime in ("onnx", "executorch")]
    assert exact == [(spec.parameters or 0) < LARGE] * 2


def test_an_entry_that_describes_nothing_has_no_count() -> None:
    bare = next(spec for spec in SPECS if spec.embedded)
    assert (bare.parts, bare.recipes, bare.parameters) == ({}, {}, None)
    assert {spec.name: spec.parameters for spec in SPECS}["dreamlite"] == 2_127_532_032 + 389_968_388 + 2_445_063
