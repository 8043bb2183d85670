"""What a recipe is by default."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from profiler.errors import InputError
from profiler.recipes import check_compute_unit, recipe_for
from profiler.records.recipe import Recipe


def test_onnx_is_exact_unless_asked_otherwise() -> None:
    assert recipe_for("onnx", height=64, width=32) == Recipe(height=64, width=32)


def test_core_ml_computes_in_float16_with_an_encoder_of_eight_bits() -> None:
    recipe = recipe_for("coreml", height=64, width=64)
    assert (recipe.precision, recipe.text_encoder, recipe.compute_unit) == ("fp16", "int8", "all")
    assert recipe.relative_tolerance == 1e-2


def test_a_tolerance_is_that_of_the_lowest_precision() -> None:
    assert recipe_for("coreml", precision="fp32", height=64, width=64).relative_tolerance == 1e-3
    assert recipe_for("onnx", text_encoder="fp16", height=64, width=64).relative_tolerance == 1e-2


def test_four_bits_stay_off_the_neural_engine() -> None:
    recipe = recipe_for("coreml", text_encoder="nf4", height=64, width=64)
    assert recipe.compute_unit == "cpu_gpu"
    check_compute_unit(recipe)
    with pytest.raises(InputError, match=r"does not load on the Neural Engine\n.*pull request 2688"):
        check_compute_unit(replace(recipe, compute_unit="all"))
