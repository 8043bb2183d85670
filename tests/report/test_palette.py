from __future__ import annotations

import itertools

import pytest

from profiler.report.palette import PAPER, ROLES, SERIES, TEXT, contrast, themed, variables

THEMES = ("light", "dark")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("role", TEXT)
@pytest.mark.parametrize("paper", PAPER)
def test_text_has_the_contrast_that_wcag_asks_for(theme: str, role: str, paper: str) -> None:
    assert contrast(getattr(TEXT[role], theme), getattr(PAPER[paper], theme)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("role", SERIES)
def test_marks_have_the_contrast_that_wcag_asks_for(theme: str, role: str) -> None:
    assert contrast(getattr(SERIES[role], theme), getattr(PAPER["card"], theme)) >= 3


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", THEMES)
def test_no_two_roles_share_a_colour_since_drawings_are_themed_by_replacing_it(theme: str) -> None:
    colours = [getattr(colour, theme) for colour in ROLES.values()]
    assert all(colour == colour.lower() and len(colour) == 7 for colour in colours)
    assert len(set(colours)) == len(colours)


@pytest.mark.parametrize("theme", THEMES)
def test_series_differ_for_eyes_without_red_or_green_cones(theme: str) -> None:
    for matrix in _BLIND.values():
        seen = [_seen(getattr(colour, theme), matrix) for colour in SERIES.values()]
        assert all(
            sum((a - b) ** 2 for a, b in zip(one, two, strict=True)) ** 0.5 > 0.1
            for one, two in itertools.combinations(seen, 2)
        )


def test_a_theme_is_variables_and_a_drawing_uses_them() -> None:
    assert "--ink: #1a1d21;" in variables("light")
    assert themed("fill: #1a1d21") == "fill: var(--ink)"


# Viénot, Brettel & Mollon, "Digital video colourmaps for checking the legibility of displays by dichromats", 1999.
_BLIND = {
    "protanopia": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    "deuteranopia": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
}


def _seen(colour: str, matrix: tuple[tuple[float, ...], ...]) -> list[float]:
    linear = [(int(colour[at : at + 2], 16) / 255) ** 2.2 for at in (1, 3, 5)]
    mixed = [sum(weight * share for weight, share in zip(row, linear, strict=True)) for row in matrix]
    return [max(0.0, share) ** (1 / 2.2) for share in mixed]
