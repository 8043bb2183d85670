"""Whole SANA-Sprint bundles, whose images are those of the pipeline's own loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.families import sana_sprint
from exporters.networks import Networks
from exporters.pipeline import export
from exporters.progress import Stages
from exporters.runtimes import runtime
from exporters.steps import make_component
from exporters.weights import RandomWeights, StoredWeights, Weights
from profiler.records.bundle import Bundle, ImageDifference
from profiler.records.recipe import recipe_of
from tests.exporters.conftest import Exported
from tests.exporters.rescheduled import Rescheduler, changed
from tests.exporters.small_sana import SIDE, sana_spec, save_sana


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sana(tmp_path_factory.mktemp("source") / "sana")


@pytest.fixture(scope="module")
def onnx_bundle(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("bundle") / "sana"
    return Exported(source, folder, export(sana_spec(source), recipe_of(SIDE, SIDE), folder), [])


@pytest.fixture(scope="module")
def rescheduler(onnx_bundle: Exported, tmp_path_factory: pytest.TempPathFactory) -> Rescheduler:
    return Rescheduler(onnx_bundle, tmp_path_factory.mktemp("rescheduled") / "sana", sana_sprint)


def exported(source: Path, folder: Path, **recipe: Any) -> Bundle:
    return export(sana_spec(source), recipe_of(SIDE, SIDE, **recipe), folder)


def check_exact(found: ImageDifference) -> None:
    assert found.float_image.relative < 5e-6
    assert found.uint8_max_levels <= 1
    assert found.uint8_changed_share <= 0.01


def test_the_image_is_the_pipelines(onnx_bundle: Exported) -> None:
    verification = onnx_bundle.bundle.verification
    check_exact(verification.images["generate"])
    assert all(found.relative < 5e-6 for found in verification.components.values())


@pytest.mark.parametrize("steps", [1, 4])
def test_so_it_is_with_other_step_counts(rescheduler: Rescheduler, steps: int) -> None:
    settings = changed(sana_spec(Path()).tasks["generate"], steps=steps, text_guidance=1.0)
    check_exact(rescheduler.image_difference("generate", settings))


def test_fp16_with_an_encoder_of_four_bits_is_within_its_tolerance(source: Path, tmp_path: Path) -> None:
    bundle = exported(source, tmp_path / "bundle", precision="fp16", text_encoder="nf4")
    assert 1e-5 < bundle.verification.images["generate"].float_image.relative < 2e-3
    coded = bundle.components["text_encoder"].quantization
    assert coded is not None
    assert (coded.scheme, coded.fallen_back) == ("nf4", ())
    assert coded.coverage > 0.99


def test_an_encoder_of_eight_bits_computes_with_the_weights_that_its_reference_holds(
    source: Path, tmp_path: Path
) -> None:
    recipe = recipe_of(SIDE, SIDE, text_encoder="int8")
    part = sana_sprint.load(Networks(source), recipe).parts["text_encoder"]
    made = make_component(part, runtime("onnx"), tmp_path, recipe, Stages())
    assert made.component.precision == "int8"
    assert made.difference is not None
    assert made.difference.relative < 5e-6


def test_core_ml_computes_it_in_fp16_with_an_encoder_of_eight_bits(source: Path, tmp_path: Path) -> None:
    pytest.importorskip("coremltools")
    bundle = exported(source, tmp_path / "bundle", runtime="coreml")
    assert 1e-5 < bundle.verification.images["generate"].float_image.relative < 5e-3
    assert bundle.components["text_encoder"].precision == "int8"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a pipeline in the float type that the published one has."""
    return save_sana(tmp_path_factory.mktemp("source") / "sana16", encoder_layers=1, dtype=torch.bfloat16)


@pytest.mark.parametrize("weights", [StoredWeights(), RandomWeights(0)], ids=["stored", "random"])
@pytest.mark.parametrize(("name", "limit"), [("onnx", 5e-6), ("executorch", 1e-4), ("coreml", 5e-3)])
def test_an_encoder_of_the_published_float_type_becomes_one_of_four_bits(
    published: Path, tmp_path: Path, weights: Weights, name: str, limit: float
) -> None:
    pytest.importorskip({"onnx": "onnx", "executorch": "executorch", "coreml": "coremltools"}[name])
    recipe = recipe_of(SIDE, SIDE, runtime=name, precision="fp16" if name == "coreml" else "fp32", text_encoder="nf4")
    part = sana_sprint.load(Networks(published, weights), recipe).parts["text_encoder"]
    made = make_component(part, runtime(name), tmp_path, recipe, Stages())
    assert made.difference is not None
    assert made.difference.relative < limit


@pytest.mark.slow
def test_executorch_makes_the_same_image(tmp_path: Path) -> None:
    pytest.importorskip("executorch")
    source = save_sana(tmp_path / "smallest", encoder_layers=1, num_layers=1)
    bundle = exported(source, tmp_path / "bundle", runtime="executorch")
    assert bundle.verification.images["generate"].float_image.relative < 1e-4
    assert bundle.verification.images["generate"].uint8_max_levels <= 1
