"""Drawing: scene records to antialiased 64×64 RGB images."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from scripts.nano.scenes import BACKGROUNDS, COLOURS, PLACES, Figure, Scene

Image = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Coordinates = npt.NDArray[np.floating[Any]]

SIDE = 64
RADII = {"small": 5.5, "large": 9.0}
SUPERSAMPLING = 8
# A generation starts from this image's latents: an image that means "no source", inside the autoencoder's domain.
BLANK_GREY = 127


def blank_image() -> Image:
    """Draw the mid-grey source image that stands for "generate from nothing"."""
    return np.full((SIDE, SIDE, 3), BLANK_GREY, np.uint8)


def centre_of(place: str) -> tuple[float, float]:
    """Give the (x, y) centre of a grid place in pixels."""
    row, column = divmod(PLACES.index(place), 3)
    cell = SIDE / 3
    return (column + 0.5) * cell, (row + 0.5) * cell


def _polygon(x: Coordinates, y: Coordinates, corners: list[tuple[float, float]]) -> Bools:
    """Fill a polygon by the even-odd rule."""
    inside = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        if y0 != y1:
            inside ^= ((y0 > y) != (y1 > y)) & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return inside


def _star_corners() -> list[tuple[float, float]]:
    angles = [np.pi * k / 5 - np.pi / 2 for k in range(10)]
    reach = [1.1 if k % 2 == 0 else 0.45 for k in range(10)]
    return [(float(r * np.cos(a)), float(r * np.sin(a)) + 0.05) for r, a in zip(reach, angles, strict=True)]


def _inside(shape: str, x: Coordinates, y: Coordinates) -> Bools:
    """Tell which points of unit coordinates lie in a shape of radius one."""
    ax, ay = np.abs(x), np.abs(y)
    if shape == "circle":
        return np.asarray(x * x + y * y < 1)
    if shape == "square":
        return np.asarray(np.maximum(ax, ay) < 0.92)
    if shape == "triangle":
        return _polygon(x, y, [(0, -1.0), (1.05, 0.9), (-1.05, 0.9)])
    if shape == "diamond":
        return np.asarray(ax + ay < 1.08)
    if shape == "star":
        return _polygon(x, y, _star_corners())
    if shape == "cross":
        return np.asarray((np.minimum(ax, ay) < 0.34) & (np.maximum(ax, ay) < 1))
    raise ValueError(f"unknown shape {shape!r}")


def draw_mask(shape: str, radius: float, centre: tuple[float, float]) -> Mask:
    """Draw a shape's coverage of each pixel, 0 to 1, as a 64×64 array."""
    steps = (np.arange(SIDE * SUPERSAMPLING, dtype=np.float32) + 0.5) / SUPERSAMPLING
    x, y = np.meshgrid((steps - centre[0]) / radius, (steps - centre[1]) / radius)
    fine = _inside(shape, x, y).reshape(SIDE, SUPERSAMPLING, SIDE, SUPERSAMPLING)
    return np.asarray(fine.mean(axis=(1, 3)), np.float32)


@cache
def figure_mask(shape: str, size: str, place: str) -> Mask:
    """Draw the coverage of a figure; there are only 108, so each is drawn once."""
    mask = draw_mask(shape, RADII[size], centre_of(place))
    mask.flags.writeable = False
    return mask


def _paint(canvas: npt.NDArray[np.float32], figure: Figure) -> None:
    coverage = figure_mask(figure.shape, figure.size, figure.place)[..., None]
    canvas += coverage * (np.asarray(COLOURS[figure.colour], np.float32) - canvas)


def draw(scene: Scene) -> Image:
    """Draw a scene as a uint8 RGB image."""
    canvas = np.empty((SIDE, SIDE, 3), np.float32)
    canvas[:] = BACKGROUNDS[scene.background]
    for figure in scene.figures:
        _paint(canvas, figure)
    return np.asarray(np.rint(canvas), np.uint8)
