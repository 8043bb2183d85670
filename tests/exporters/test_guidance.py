"""Guidance as a weighted sum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.guidance import source_branches, text_branches
from profiler.errors import InputError
from profiler.records.plan import Guidance

scales = st.floats(min_value=1.01, max_value=20)
predictions = st.floats(min_value=-5, max_value=5)


@given(scales, predictions, predictions)
def test_text_guidance_is_the_stock_formula(scale: float, text: float, negative: float) -> None:
    branches = text_branches(Guidance(text=scale))
    found = sum(branch.weight * {"text": text, "negative": negative}[branch.name] for branch in branches)
    assert found == pytest.approx(negative + scale * (text - negative), abs=1e-9)


@given(scales, scales, predictions, predictions, predictions)
def test_source_guidance_is_the_stock_formula(scale: float, image: float, a: float, b: float, c: float) -> None:
    branches = source_branches(Guidance(text=scale, image=image), "source_latents")
    found = sum(branch.weight * {"text": a, "image": b, "blank": c}[branch.name] for branch in branches)
    assert found == pytest.approx(c + scale * (a - b) + image * (b - c), abs=1e-9)


@given(scales)
def test_weights_sum_to_one(scale: float) -> None:
    for branches in (text_branches(Guidance(text=scale)), source_branches(Guidance(text=scale, image=1.7), "x")):
        assert sum(branch.weight for branch in branches) == pytest.approx(1)


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0])
def test_without_guidance_one_branch_is_left(scale: float) -> None:
    assert [branch.weight for branch in text_branches(Guidance(text=scale))] == [1.0]
    assert [branch.weight for branch in source_branches(Guidance(text=scale, image=1.5), "x")] == [1.0]


@pytest.mark.parametrize("image", [None, 1.0])
def test_at_image_guidance_one_the_branch_without_an_image_is_not_called(image: float | None) -> None:
    branches = source_branches(Guidance(text=3.0, image=image), "blank_latents")
    assert [(branch.bind, branch.weight) for branch in branches] == [
        ({"text_states": "text_states", "source_latents": "blank_latents"}, 3.0),
        ({"text_states": "negative_states", "source_latents": "blank_latents"}, -2.0),
    ]


def test_the_unguided_branch_sees_zero_latents() -> None:
    branches = source_branches(Guidance(text=3.0, image=1.5), "source_latents")
    assert [branch.bind["source_latents"] for branch in branches] == ["source_latents"] * 2 + ["zero_latents"]


def test_image_guidance_below_one_is_refused() -> None:
    with pytest.raises(InputError, match=r"0\.5"):
        source_branches(Guidance(text=3.0, image=0.5), "source_latents")


def test_image_guidance_without_a_source_image_is_refused() -> None:
    with pytest.raises(InputError, match="no source image"):
        text_branches(Guidance(text=3.0, image=1.5))
