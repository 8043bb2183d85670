"""Judge: reads figures and background off an image by rules alone and compares them with what a sentence named."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from scripts.nano.drawing import Image, centre_of, figure_mask
from scripts.nano.language import Mention
from scripts.nano.scenes import BACKGROUNDS, COLOURS, PLACES, SHAPES, SIZES, Figure, Rgb

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

FOREGROUND_DISTANCE = 45.0  # just under half of the smallest distance between a colour and a background, 97
BACKGROUND_DISTANCE = 40.0
COLOUR_DISTANCE = 55.0  # the two closest colours are 94 apart
PURE_SHARE = 0.8
SPECK_AREA = 15  # pixels; the smallest figure, a small star, covers 44
PLACE_DISTANCE = 6.0
SHAPE_OVERLAP = 0.65
SHIFTS = tuple((dy, dx) for dy in (-2, -1, 0, 1, 2) for dx in (-2, -1, 0, 1, 2))
_TEMPLATES = tuple((shape, size) for shape in SHAPES for size in SIZES)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A figure as the judge sees it; None is an attribute that fits nothing known."""

    shape: str | None
    colour: str | None
    size: str | None
    place: str | None


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """All that the judge sees in an image."""

    figures: tuple[Seen, ...]
    background: str | None


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Whether an image agrees with what was asked, per kind of attribute; None was not asked."""

    count: bool
    shape: bool | None
    colour: bool | None
    size: bool | None
    place: bool | None
    background: bool | None

    @property
    def right(self) -> bool:
        """Tell whether everything that was asked is there."""
        return all(value is not False for value in vars(self).values())


def _nearest(pixel: Floats, palette: dict[str, Rgb], limit: float) -> str | None:
    distances = {name: float(np.linalg.norm(pixel - np.asarray(rgb, np.float32))) for name, rgb in palette.items()}
    name = min(distances, key=distances.__getitem__)
    return name if distances[name] <= limit else None


@lru_cache(maxsize=len(PLACES))
def _templates_at(place: str) -> Floats:
    """Draw every shape and size at a place, slightly shifted in every direction: [templates, shifts, 64, 64]."""
    masks = [figure_mask(shape, size, place) for shape, size in _TEMPLATES]
    return np.stack([np.stack([np.roll(mask, shift, (0, 1)) for shift in SHIFTS]) for mask in masks])


def _place_of(component: Bools) -> tuple[str, bool]:
    """Find the nearest grid place to a component's bounding box, and whether it is near enough."""
    rows, columns = np.nonzero(component)
    x, y = (columns.min() + columns.max() + 1) / 2, (rows.min() + rows.max() + 1) / 2
    distances = {place: float(np.hypot(x - centre_of(place)[0], y - centre_of(place)[1])) for place in PLACES}
    place = min(distances, key=distances.__getitem__)
    return place, distances[place] <= PLACE_DISTANCE


def _colour_of(pixels: Floats, background: Floats, component: Bools) -> tuple[Floats, str | None]:
    """Measure a component's colour where it is strongest and name it, unless it is mixed or unknown.

    Pixels between the colour and the background are a soft rim, not a mixture: purity is nearness to that line.
    """
    inside = pixels[component]
    contrast = np.linalg.norm(inside - background, axis=-1)
    colour = np.asarray(np.median(inside[contrast >= np.median(contrast)], axis=0), np.float32)
    line = background + _share(inside, background, colour)[:, None] * (colour - background)
    pure = float(np.mean(np.linalg.norm(inside - line, axis=-1) < FOREGROUND_DISTANCE)) >= PURE_SHARE
    return colour, _nearest(colour, COLOURS, COLOUR_DISTANCE) if pure else None


def _share(pixels: Floats, background: Floats, colour: Floats) -> Floats:
    """Tell how far each pixel lies from the background (0) towards the colour (1)."""
    axis = colour - background
    return np.asarray(((pixels - background) @ axis / float(axis @ axis)).clip(0, 1), np.float32)


def _coverage(pixels: Floats, background: Floats, colour: Floats, component: Bools) -> Floats:
    """Estimate how much of each pixel near a component is covered."""
    near = ndimage.binary_dilation(component, iterations=2)
    return np.asarray(np.where(near, _share(pixels, background, colour), 0), np.float32)


def _shape_of(coverage: Floats, place: str) -> tuple[str | None, str | None]:
    """Name the drawn template with the best soft overlap (intersection over union)."""
    templates = _templates_at(place)
    overlaps = np.minimum(templates, coverage).sum((-1, -2)) / np.maximum(templates, coverage).sum((-1, -2))
    best = overlaps.max(axis=1)
    index = int(best.argmax())
    return _TEMPLATES[index] if best[index] >= SHAPE_OVERLAP else (None, None)


def _see_figure(pixels: Floats, background: Floats, component: Bools) -> Seen:
    colour, colour_name = _colour_of(pixels, background, component)
    place, near = _place_of(component)
    shape, size = _shape_of(_coverage(pixels, background, colour, component), place)
    return Seen(shape=shape, colour=colour_name, size=size, place=place if near else None)


def look(image: Image) -> Sighting:
    """See the figures and the background of an image."""
    pixels = image.astype(np.float32)
    background = np.asarray(np.median(pixels.reshape(-1, 3), axis=0), np.float32)
    foreground = np.linalg.norm(pixels - background, axis=-1) > FOREGROUND_DISTANCE
    labels, count = ndimage.label(foreground)
    components = [labels == index for index in range(1, count + 1)]
    figures = tuple(_see_figure(pixels, background, c) for c in components if c.sum() >= SPECK_AREA)
    return Sighting(figures=figures, background=_nearest(background, BACKGROUNDS, BACKGROUND_DISTANCE))


def fits(mention: Mention, seen: Seen) -> bool:
    """Tell whether a seen figure is as a mention says."""
    return all(hit is not False for hit in _hits(mention, seen).values())


def _hits(mention: Mention, seen: Seen | None) -> dict[str, bool | None]:
    named = vars(mention)
    return {key: None if said is None else said == getattr(seen, key, None) for key, said in named.items()}


def _all_hit(hits: list[dict[str, bool | None]], key: str) -> bool | None:
    asked = [hit[key] for hit in hits if hit[key] is not None]
    return all(asked) if asked else None


def compare(sighting: Sighting, mentions: tuple[Mention, ...], background: str | None) -> Finding:
    """Compare a sighting with the figures and the background asked for; figures are paired for the most agreement."""
    padded: tuple[Seen | None, ...] = (*sighting.figures[:4], *(None,) * len(mentions))
    orders = permutations(padded, len(mentions))
    pairings = ([_hits(m, s) for m, s in zip(mentions, order, strict=True)] for order in orders)
    hits = max(pairings, key=lambda pairing: sum(value is True for hit in pairing for value in hit.values()))
    return Finding(
        count=len(sighting.figures) == len(mentions),
        shape=_all_hit(hits, "shape"),
        colour=_all_hit(hits, "colour"),
        size=_all_hit(hits, "size"),
        place=_all_hit(hits, "place"),
        background=None if background is None else sighting.background == background,
    )


def mention_all(figure: Figure) -> Mention:
    """Name everything about a figure."""
    return Mention(**vars(figure))
