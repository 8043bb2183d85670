"""Scenes, drawing and edits: records stay legal, the split is disjoint, pictures show what the records say."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.nano.drawing import SIDE, blank_image, draw
from scripts.nano.edits import EDIT_OPS, sample_edit
from scripts.nano.scenes import BACKGROUNDS, COLOURS, Figure, Scene, arrange, random_scene, sample_scene, split_of

SEEDS = st.integers(0, 2**32)
QUICK = settings(max_examples=60, deadline=None)


def test_two_figures_in_one_place_are_refused() -> None:
    figure = Figure(shape="star", colour="red", size="small", place="top")
    with pytest.raises(ValueError, match="share a place"):
        arrange((figure, figure), "white")


def test_the_order_in_which_figures_are_given_makes_no_other_scene() -> None:
    star = Figure(shape="star", colour="red", size="small", place="top")
    circle = Figure(shape="circle", colour="blue", size="large", place="left")
    assert arrange((star, circle), "white") == arrange((circle, star), "white")


@QUICK
@given(SEEDS, st.sampled_from((1, 2)))
def test_the_splits_share_no_scene(seed: int, count: int) -> None:
    rng = Random(seed)
    trained, held_out = sample_scene(rng, count, "train"), sample_scene(rng, count, "held_out")
    assert (split_of(trained), split_of(held_out)) == ("train", "held_out")
    assert trained.key != held_out.key


def test_one_scene_in_ten_is_held_out() -> None:
    rng = Random(0)
    held_out = sum(split_of(random_scene(rng, 2)) == "held_out" for _ in range(4000))
    assert 320 < held_out < 480


def test_an_empty_scene_is_never_held_out() -> None:
    assert all(split_of(Scene(figures=(), background=name)) == "train" for name in BACKGROUNDS)


@QUICK
@given(SEEDS, st.sampled_from(EDIT_OPS), st.sampled_from(("train", "held_out")))
def test_an_edit_stays_in_its_split_and_changes_something(seed: int, op: str, split: str) -> None:
    edit = sample_edit(Random(seed), op, split)  # type: ignore[arg-type]
    assert edit.source != edit.target
    assert len(edit.target.figures) <= 2
    assert all(split_of(scene) == split for scene in (edit.source, edit.target) if scene.figures)


@QUICK
@given(SEEDS, st.sampled_from(EDIT_OPS))
def test_an_edit_leaves_every_other_figure_alone(seed: int, op: str) -> None:
    edit = sample_edit(Random(seed), op, "train")
    others = set(edit.source.figures) - {edit.subject}
    assert others == set(edit.target.figures) - {edit.result}


def test_a_drawing_shows_its_colours_at_centre_and_edge() -> None:
    figure = Figure(shape="circle", colour="purple", size="large", place="centre")
    image = draw(arrange((figure,), "brown"))
    assert image.shape == (SIDE, SIDE, 3)
    assert image.dtype == np.uint8
    assert tuple(image[32, 32]) == COLOURS["purple"]
    assert tuple(image[0, 0]) == BACKGROUNDS["brown"]


def test_drawn_edges_are_antialiased() -> None:
    figure = Figure(shape="circle", colour="red", size="large", place="centre")
    assert len(np.unique(draw(arrange((figure,), "black"))[..., 0])) > 6


def test_figures_never_touch() -> None:
    big = [Figure(shape="square", colour="red", size="large", place=place) for place in ("left", "centre")]
    row = draw(arrange((big[0], big[1]), "black"))[32, :, 0]
    assert row[21] == BACKGROUNDS["black"][0]


def test_the_blank_source_is_mid_grey() -> None:
    assert np.unique(blank_image()).tolist() == [127]
