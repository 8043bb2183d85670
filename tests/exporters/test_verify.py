"""Comparing a bundle with its source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from exporters.parts import Graph, Part, Reference
from exporters.progress import Stages
from exporters.runtimes.onnx import export_part
from exporters.verify import check_tolerance, difference, image_difference, verify_part
from profiler.errors import BeyondTolerance, ModelError
from profiler.records.bundle import Component, Difference, ImageDifference
from profiler.runner.engines.onnxruntime_engine import OnnxRuntimeEngine
from profiler.runner.interpreter import Image, to_pixels
from tests.exporters.small_pipelines import small_recipe

EXACT = Difference(max_absolute=0.0, relative=0.0)


class Adds(nn.Module):
    def __init__(self, amount: float) -> None:
        super().__init__()
        self.amount = amount

    def forward(self, values: Tensor) -> Tensor:
        return values + self.amount


def adding(amount: float) -> Part:
    graph = Graph(module=Adds(amount), inputs={"values": torch.ones(1, 4)}, outputs=("sums",))
    return Part(name="adds", graphs={"forward": graph})


def image_of(difference_: Difference) -> ImageDifference:
    return ImageDifference(float_image=difference_, uint8_max_levels=0, uint8_changed_share=0.0)


def test_a_difference_is_the_largest_and_the_relative_one() -> None:
    found = difference(np.array([3.0, 4.5]), np.array([3.0, 4.0]))
    assert found == Difference(max_absolute=0.5, relative=0.1)


def test_against_zeros_the_relative_difference_is_the_outputs_size() -> None:
    assert difference(np.array([3.0, 4.0]), np.zeros(2)).relative == 5.0


@pytest.mark.parametrize(("levels", "share"), [(2, 0.001), (1, 0.011), (1, float("nan"))])
def test_an_image_that_rounds_differently_is_refused(levels: int, share: float) -> None:
    found = ImageDifference(float_image=EXACT, uint8_max_levels=levels, uint8_changed_share=share)
    with pytest.raises(BeyondTolerance, match=r"levels away from its source's .* the recipe allows 1 on 1%"):
        check_tolerance("edit", found, small_recipe(), {"decoder": EXACT})


def test_one_level_on_a_hundredth_of_the_values_is_accepted() -> None:
    found = ImageDifference(float_image=EXACT, uint8_max_levels=1, uint8_changed_share=0.01)
    check_tolerance("edit", found, small_recipe(), {"decoder": EXACT})


def test_an_images_pixels_are_compared_after_rounding() -> None:
    reference = np.full((1, 3, 2, 2), 100.4, np.float32)
    changed = reference.copy()
    changed[0, 0, 0, 0] = 102.6
    found = image_difference(Image(to_pixels(changed), changed), Reference(reference, np.zeros(0, np.float32)))
    assert found.uint8_max_levels == 3
    assert found.uint8_changed_share == pytest.approx(1 / 12)
    assert found.float_image.max_absolute == pytest.approx(2.2, abs=1e-4)


def test_an_image_within_tolerance_passes() -> None:
    check_tolerance("generate", image_of(Difference(max_absolute=1, relative=1e-3)), small_recipe(), {"decoder": EXACT})


@pytest.mark.parametrize("relative", [2e-3, float("nan"), float("inf")])
def test_an_image_beyond_tolerance_names_the_worst_component(relative: float) -> None:
    parts = {"denoiser": Difference(max_absolute=1, relative=0.5), "decoder": EXACT}
    with pytest.raises(BeyondTolerance, match="denoiser") as caught:
        check_tolerance("edit", image_of(Difference(max_absolute=1, relative=relative)), small_recipe(), parts)
    assert caught.value.exit_code == 1


def test_a_component_with_undefined_output_counts_as_the_worst() -> None:
    parts = {"denoiser": Difference(max_absolute=1, relative=0.5), "decoder": image_of(EXACT).float_image}
    parts["decoder"] = Difference(max_absolute=float("nan"), relative=float("nan"))
    with pytest.raises(BeyondTolerance, match="decoder"):
        check_tolerance("edit", image_of(Difference(max_absolute=1, relative=1)), small_recipe(), parts)


def verified(component: Component, folder: Path, amount: float) -> Difference:
    return verify_part(adding(amount), component, folder, OnnxRuntimeEngine(threads=1))


def test_a_component_is_compared_with_its_eager_module(tmp_path: Path) -> None:
    component = export_part(adding(1.0), tmp_path, small_recipe(), Stages())
    assert verified(component, tmp_path, 1.0) == EXACT
    assert verified(component, tmp_path, 1.5).max_absolute == pytest.approx(0.5)


def test_a_component_that_does_not_load_is_the_models_fault(tmp_path: Path) -> None:
    component = export_part(adding(1.0), tmp_path, small_recipe(), Stages())
    (tmp_path / component.files[0]).write_bytes(b"no graph")
    with pytest.raises(ModelError, match="adds does not run"):
        verified(component, tmp_path, 1.0)
