"""Language: sentences say what their meaning says, and refer to one figure only."""

from __future__ import annotations

import re
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.nano.edits import EDIT_OPS, sample_edit
from scripts.nano.language import Mention, describe_edit, describe_scene, mention_apart, vocabulary
from scripts.nano.scenes import Figure, arrange, random_scene

SEEDS = st.integers(0, 2**32)
QUICK = settings(max_examples=150, deadline=None)
SYNONYMS = {"grey": ("grey", "gray"), "centre": ("centre", "center", "middle")}


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text))


def _says(text: str, phrase: str) -> bool:
    return any(option in text for option in SYNONYMS.get(phrase, (phrase,)))


@QUICK
@given(SEEDS, st.sampled_from((1, 2)))
def test_a_prompt_names_exactly_what_its_meaning_names(seed: int, count: int) -> None:
    rng = Random(seed)
    scene = random_scene(rng, count)
    sentence = describe_scene(rng, scene)
    assert len(sentence.mentions) == count
    assert all(any(mention.fits(figure) for figure in scene.figures) for mention in sentence.mentions)
    assert sentence.background in (None, scene.background)
    said = [value for mention in sentence.mentions for value in vars(mention).values() if value]
    assert all(_says(sentence.text, value) for value in [*said, *filter(None, [sentence.background])])


@QUICK
@given(SEEDS, st.sampled_from(EDIT_OPS))
def test_every_word_of_an_instruction_is_in_the_vocabulary(seed: int, op: str) -> None:
    rng = Random(seed)
    assert _words(describe_edit(rng, sample_edit(rng, op, "train")).text) <= set(vocabulary())


@QUICK
@given(SEEDS, st.sampled_from((1, 2)))
def test_every_word_of_a_prompt_is_in_the_vocabulary(seed: int, count: int) -> None:
    rng = Random(seed)
    assert _words(describe_scene(rng, random_scene(rng, count)).text) <= set(vocabulary())


@QUICK
@given(SEEDS, st.sampled_from(("recolour", "replace", "remove", "move")))
def test_an_instruction_refers_to_one_figure_only(seed: int, op: str) -> None:
    rng = Random(seed)
    edit = sample_edit(rng, op, "train")
    subject = describe_edit(rng, edit).subject
    assert subject is not None
    assert [figure for figure in edit.source.figures if subject.fits(figure)] == [edit.subject]


def test_twins_are_told_apart_by_place() -> None:
    twins = [Figure(shape="star", colour="red", size="small", place=place) for place in ("left", "right")]
    mention = mention_apart(Random(0), twins[0], arrange((twins[0], twins[1]), "white"))
    assert mention.place == "left"


def test_a_mention_fits_by_what_it_names_only() -> None:
    star = Figure(shape="star", colour="red", size="small", place="left")
    assert Mention(colour="red").fits(star)
    assert not Mention(colour="red", size="large").fits(star)


def test_articles_follow_the_sound() -> None:
    rng = Random(0)
    texts = [describe_scene(rng, random_scene(rng, 1)).text for _ in range(500)]
    assert any("an orange" in text for text in texts)
    assert not any(re.search(r"\ba [aeiou]", text) for text in texts)
