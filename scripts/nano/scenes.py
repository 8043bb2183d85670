"""Scenes: the records of one or two flat figures on a 3×3 grid, how they are sampled and which ones are held out."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random
from typing import Literal

Split = Literal["train", "held_out"]
Rgb = tuple[int, int, int]

SHAPES = ("circle", "square", "triangle", "diamond", "star", "cross")
SIZES = ("small", "large")
PLACES = ("top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right")
# At least 90 apart in RGB, so that neither blur nor half precision can turn one into another.
COLOURS: dict[str, Rgb] = {
    "red": (220, 30, 35),
    "orange": (255, 140, 0),
    "yellow": (250, 225, 40),
    "green": (30, 160, 60),
    "cyan": (40, 210, 220),
    "blue": (40, 70, 225),
    "purple": (135, 50, 170),
    "pink": (250, 120, 185),
}
BACKGROUNDS: dict[str, Rgb] = {
    "white": (245, 245, 245),
    "black": (16, 16, 16),
    "grey": (168, 168, 168),
    "brown": (101, 67, 33),
}
HELD_OUT_ONE_IN = 10


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One shape on the grid."""

    shape: str
    colour: str
    size: str
    place: str


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Figures in reading order of their places, on one background."""

    figures: tuple[Figure, ...]
    background: str

    @property
    def key(self) -> str:
        """Name the scene uniquely, for hashing."""
        parts = [f"{f.size} {f.colour} {f.shape} {f.place}" for f in self.figures]
        return "; ".join([*parts, self.background])


def arrange(figures: tuple[Figure, ...], background: str) -> Scene:
    """Build a scene with its figures in canonical order; two figures in one place are a ValueError."""
    ordered = tuple(sorted(figures, key=lambda f: PLACES.index(f.place)))
    if len({f.place for f in ordered}) != len(ordered):
        raise ValueError("two figures share a place; give each its own")
    return Scene(figures=ordered, background=background)


def split_of(scene: Scene) -> Split:
    """Tell by a hash of its record whether a scene may be trained on."""
    if not scene.figures:  # there are only four empty scenes: removal has to be able to learn each of them
        return "train"
    digest = hashlib.sha256(scene.key.encode()).digest()
    return "held_out" if int.from_bytes(digest[:8], "big") % HELD_OUT_ONE_IN == 0 else "train"


def random_figure(rng: Random, place: str) -> Figure:
    """Draw a figure's shape, colour and size at random for a given place."""
    return Figure(shape=rng.choice(SHAPES), colour=rng.choice(tuple(COLOURS)), size=rng.choice(SIZES), place=place)


def random_scene(rng: Random, figure_count: int) -> Scene:
    """Draw a scene with the given number of figures at random from both splits."""
    places = rng.sample(PLACES, figure_count)
    figures = tuple(random_figure(rng, place) for place in places)
    return arrange(figures, rng.choice(tuple(BACKGROUNDS)))


def sample_scene(rng: Random, figure_count: int, split: Split) -> Scene:
    """Draw a scene with the given number of figures at random from one split."""
    while split_of(scene := random_scene(rng, figure_count)) != split:
        pass
    return scene
