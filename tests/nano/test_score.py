"""Score: shares carry honest intervals, cases are held out and repeatable, the card says what was measured."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("diffusers")

from scripts.nano.drawing import draw
from scripts.nano.judge import Finding
from scripts.nano.referee import judge_sentence
from scripts.nano.scenes import split_of
from scripts.nano.score import (
    rate,
    rate_findings,
    sample_edit_cases,
    sample_prompts,
)


def test_a_share_has_wilsons_interval() -> None:
    assert rate([True] * 8 + [False] * 2) == {"share": 0.8, "n": 10, "interval_95": [0.4902, 0.9433]}


def test_a_perfect_share_is_not_certain() -> None:
    low, high = rate([True] * 20)["interval_95"]
    assert low == pytest.approx(0.8389, abs=1e-4)
    assert high == 1.0


def test_nothing_asked_is_no_share() -> None:
    assert rate([]) == {"share": None, "n": 0, "interval_95": None}


def test_attributes_that_were_not_asked_do_not_count() -> None:
    asked = Finding(count=True, shape=True, colour=False, size=None, place=None, background=None)
    rates = rate_findings([asked])
    assert rates["right"]["share"] == 0.0
    assert rates["per_attribute"]["colour"]["n"] == 1
    assert rates["per_attribute"]["size"]["n"] == 0


@pytest.mark.parametrize("figures", [1, 2])
def test_prompts_are_held_out_repeatable_and_met_by_their_own_scene(figures: int) -> None:
    cases = sample_prompts(3, 40, figures, "held_out")
    assert cases == sample_prompts(3, 40, figures, "held_out")
    assert all(split_of(scene) == "held_out" for scene, _ in cases)
    assert all(judge_sentence(sentence, draw(scene)).right for scene, sentence in cases)


def test_edits_are_held_out_on_both_sides() -> None:
    for edit, _ in sample_edit_cases(3, 5, "held_out"):
        assert all(split_of(scene) == "held_out" for scene in (edit.source, edit.target) if scene.figures)
