"""What a recipe is by default."""

from __future__ import annotations

from profiler.records.recipe import Recipe, recipe_of


def test_onnx_is_exact_unless_asked_otherwise() -> None:
    assert recipe_of(64, 32) == Recipe(height=64, width=32)


def test_core_ml_computes_in_half_precision_with_an_encoder_of_eight_bits() -> None:
    recipe = recipe_of(64, 64, runtime="coreml")
    assert (recipe.precision, recipe.text_encoder, recipe.compute_unit) == ("fp16", "int8", "all")
    assert recipe.relative_tolerance == 1e-2


def test_an_encoder_without_a_scheme_is_as_precise_as_the_rest() -> None:
    assert recipe_of(64, 64, precision="fp16").text_encoder == "fp16"
    assert recipe_of(64, 64, runtime="coreml", precision="fp32").text_encoder == "fp32"


def test_a_tolerance_is_that_of_the_lowest_precision() -> None:
    assert recipe_of(64, 64, runtime="coreml", precision="fp32").relative_tolerance == 1e-3
    assert recipe_of(64, 64, text_encoder="fp16").relative_tolerance == 1e-2


def test_four_bits_stay_off_the_neural_engine() -> None:
    assert recipe_of(64, 64, runtime="coreml", text_encoder="nf4").compute_unit == "cpu_gpu"
