"""Judge: agrees with drawn truth, clean or a little spoilt, and refuses pictures that are wrong in one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from scripts.nano.drawing import Image, blank_image, draw
from scripts.nano.edits import EDIT_OPS, sample_edit
from scripts.nano.judge import Finding, compare, look, mention_all
from scripts.nano.language import Mention, describe_edit
from scripts.nano.referee import judge_edit
from scripts.nano.scenes import COLOURS, Figure, Scene, arrange, random_scene

RED_STAR = Figure(shape="star", colour="red", size="large", place="top left")
BLUE_SQUARE = Figure(shape="square", colour="blue", size="small", place="right")
SCENE = arrange((RED_STAR, BLUE_SQUARE), "white")


def judge(image: Image, truth: Scene) -> Finding:
    return compare(look(image), tuple(mention_all(figure) for figure in truth.figures), truth.background)


def blurred(image: Image) -> Image:
    return np.asarray(ndimage.gaussian_filter(image.astype(float), (0.7, 0.7, 0)).round(), np.uint8)


def noisy(image: Image) -> Image:
    noise = np.random.default_rng(int(image.sum())).normal(0, 8, image.shape)
    return np.asarray((image + noise).clip(0, 255), np.uint8)


@pytest.mark.parametrize("spoil", [lambda image: image, blurred, noisy], ids=["clean", "blurred", "noisy"])
def test_the_judge_agrees_with_drawn_truth(spoil: Callable[[Image], Image]) -> None:
    rng = Random(0)
    scenes = [random_scene(rng, index % 3) for index in range(300)]
    assert np.mean([judge(spoil(draw(scene)), scene).right for scene in scenes]) >= 0.99


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(EDIT_OPS))
def test_an_edited_scene_is_not_taken_for_its_source(seed: int, op: str) -> None:
    edit = sample_edit(Random(seed), op, "held_out")
    assert not judge(draw(edit.target), edit.source).right


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (arrange((replace(RED_STAR, colour="pink"), BLUE_SQUARE), "white"), "colour"),
        (arrange((replace(RED_STAR, colour="blue"), replace(BLUE_SQUARE, colour="red")), "white"), "colour"),
        (arrange((replace(RED_STAR, shape="cross"), BLUE_SQUARE), "white"), "shape"),
        (arrange((replace(RED_STAR, size="small"), BLUE_SQUARE), "white"), "size"),
        (arrange((replace(RED_STAR, place="left"), BLUE_SQUARE), "white"), "place"),
        (arrange((RED_STAR,), "white"), "count"),
        (arrange((), "white"), "count"),
        (replace(SCENE, background="black"), "background"),
    ],
    ids=["colour", "swapped colours", "shape", "size", "place", "missing", "empty", "background"],
)
def test_a_picture_that_is_wrong_in_one_thing_is_judged_wrong_in_it(wrong: Scene, kind: str) -> None:
    finding = judge(draw(wrong), SCENE)
    assert not finding.right
    assert getattr(finding, kind) is False


def test_swapped_colours_are_wrong_even_when_no_place_is_named() -> None:
    mentions = (Mention(shape="star", colour="blue"), Mention(shape="square", colour="red"))
    assert compare(look(draw(SCENE)), mentions, None).colour is False


def test_an_extra_figure_is_judged_wrong() -> None:
    finding = compare(look(draw(SCENE)), (mention_all(RED_STAR),), "white")
    assert finding.count is False


def test_only_what_is_named_is_judged() -> None:
    finding = compare(look(draw(SCENE)), (Mention(shape="square"), Mention(colour="red")), None)
    assert finding.right
    assert (finding.size, finding.place, finding.background) == (None, None, None)


def test_a_figure_of_two_colours_has_none() -> None:
    image = draw(arrange((RED_STAR,), "white")).copy()
    left = image[:, :11]
    left[np.linalg.norm(left.astype(float) - COLOURS["red"], axis=-1) < 60] = COLOURS["blue"]
    assert look(image).figures[0].colour is None


def test_a_smudge_is_a_figure_of_no_shape() -> None:
    image = draw(SCENE).copy()
    image[50:62, 2:6] = COLOURS["green"]
    smudge = [figure for figure in look(image).figures if figure.colour == "green"]
    assert [figure.shape for figure in smudge] == [None]


def test_the_blank_image_has_no_known_background() -> None:
    assert look(blank_image()).background is None


def test_an_instruction_is_met_by_its_own_target_only() -> None:
    rng = Random(1)
    for index in range(60):
        edit = sample_edit(rng, EDIT_OPS[index % len(EDIT_OPS)], "held_out")
        sentence = describe_edit(rng, edit)
        reached = judge_edit(edit, sentence, draw(edit.target))
        unchanged = judge_edit(edit, sentence, draw(edit.source))
        assert (reached.done, reached.preserved, reached.right, reached.unchanged_error) == (True, True, True, 0)
        assert (unchanged.done, unchanged.preserved, unchanged.right) == (False, True, False)
