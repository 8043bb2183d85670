"""Edits: a source scene, one operation on it and the scene that must come out, sampled within one split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from scripts.nano.scenes import (
    BACKGROUNDS,
    COLOURS,
    PLACES,
    SHAPES,
    Figure,
    Scene,
    Split,
    arrange,
    random_figure,
    random_scene,
    split_of,
)

EDIT_OPS = ("recolour", "replace", "remove", "add", "move", "background")


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One edit; `subject` is the figure of the source that it refers to, `result` the figure that comes out."""

    op: str
    source: Scene
    target: Scene
    subject: Figure | None
    result: Figure | None


def _other(rng: Random, options: tuple[str, ...], taken: set[str]) -> str:
    return rng.choice([option for option in options if option not in taken])


def _swap(op: str, source: Scene, subject: Figure, result: Figure) -> Edit:
    figures = tuple(result if figure == subject else figure for figure in source.figures)
    target = arrange(figures, source.background)
    return Edit(op=op, source=source, target=target, subject=subject, result=result)


def _recolour(rng: Random, source: Scene) -> Edit:
    subject = rng.choice(source.figures)
    return _swap("recolour", source, subject, replace(subject, colour=_other(rng, tuple(COLOURS), {subject.colour})))


def _replace(rng: Random, source: Scene) -> Edit:
    subject = rng.choice(source.figures)
    colour = rng.choice(tuple(COLOURS)) if rng.random() < 0.3 else subject.colour
    result = replace(subject, shape=_other(rng, SHAPES, {subject.shape}), colour=colour)
    return _swap("replace", source, subject, result)


def _move(rng: Random, source: Scene) -> Edit:
    subject = rng.choice(source.figures)
    return _swap("move", source, subject, replace(subject, place=_free_place(rng, source)))


def _remove(rng: Random, source: Scene) -> Edit:
    subject = rng.choice(source.figures)
    rest = tuple(figure for figure in source.figures if figure != subject)
    target = arrange(rest, source.background)
    return Edit(op="remove", source=source, target=target, subject=subject, result=None)


def _add(rng: Random, source: Scene) -> Edit:
    result = random_figure(rng, _free_place(rng, source))
    target = arrange((*source.figures, result), source.background)
    return Edit(op="add", source=source, target=target, subject=None, result=result)


def _background(rng: Random, source: Scene) -> Edit:
    target = replace(source, background=_other(rng, tuple(BACKGROUNDS), {source.background}))
    return Edit(op="background", source=source, target=target, subject=None, result=None)


def _free_place(rng: Random, scene: Scene) -> str:
    return _other(rng, PLACES, {figure.place for figure in scene.figures})


_SAMPLERS: dict[str, Callable[[Random, Scene], Edit]] = {
    "recolour": _recolour,
    "replace": _replace,
    "remove": _remove,
    "add": _add,
    "move": _move,
    "background": _background,
}


def _source_count(rng: Random, op: str) -> int:
    """Choose how many figures the source has; two at most may come out."""
    if op == "add":
        return 0 if rng.random() < 0.1 else 1
    return 2 if rng.random() < 0.6 else 1


def _belongs(edit: Edit, split: Split) -> bool:
    """Tell whether all that the edit shows lies in one split (an empty scene is in both)."""
    return all(split_of(scene) == split for scene in (edit.source, edit.target) if scene.figures)


def sample_edit(rng: Random, op: str, split: Split) -> Edit:
    """Draw an edit of one kind at random whose source and target both belong to the split."""
    while True:
        edit = _SAMPLERS[op](rng, random_scene(rng, _source_count(rng, op)))
        if _belongs(edit, split):
            return edit
