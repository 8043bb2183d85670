"""Referee: whether an image does what a sentence asked, and for an edit, whether it leaves the rest alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scripts.nano.drawing import Image, draw
from scripts.nano.edits import Edit
from scripts.nano.judge import Finding, Sighting, compare, fits, look, mention_all
from scripts.nano.language import Mention, Sentence


@dataclass(frozen=True, kw_only=True)
class EditFinding:
    """What became of one edit."""

    done: bool
    preserved: bool
    right: bool
    unchanged_error: float


def judge_sentence(sentence: Sentence, image: Image) -> Finding:
    """Judge whether an image shows what a prompt names, and no more figures."""
    return compare(look(image), sentence.mentions, sentence.background)


def wanted_of(edit: Edit, sentence: Sentence) -> tuple[list[Mention], list[Mention]]:
    """List what must be there after an edit: the figures that it leaves alone, and the one it makes, if any."""
    kept = [mention_all(figure) for figure in edit.target.figures if figure != edit.result]
    if edit.result is None:
        return kept, []
    return kept, [sentence.mentions[0] if edit.op == "add" else mention_all(edit.result)]


def judge_edit(edit: Edit, sentence: Sentence, image: Image) -> EditFinding:
    """Judge whether an edit was done and whether all else was preserved."""
    seen = look(image)
    kept, made = wanted_of(edit, sentence)
    others = len(seen.figures) <= len(kept) + max(len(made), edit.op == "remove")
    background = edit.op == "background" or seen.background == edit.source.background
    preserved = background and others and all(any(fits(m, figure) for figure in seen.figures) for m in kept)
    right = compare(seen, (*kept, *made), edit.target.background).right
    return EditFinding(
        done=_is_done(edit, made, seen), preserved=preserved, right=right, unchanged_error=_unchanged_error(edit, image)
    )


def _is_done(edit: Edit, made: list[Mention], seen: Sighting) -> bool:
    if edit.op == "background":
        return seen.background == edit.target.background
    if edit.op == "remove":
        return edit.subject is not None and all(figure.place != edit.subject.place for figure in seen.figures)
    return any(fits(made[0], figure) for figure in seen.figures)


def _unchanged_error(edit: Edit, image: Image) -> float:
    """Measure the mean absolute error, in 8-bit levels, where source and target are alike; nan if nowhere."""
    source, target = draw(edit.source).astype(float), draw(edit.target).astype(float)
    alike = (source == target).all(-1)
    return float(np.abs(image - source)[alike].mean()) if alike.any() else float("nan")
