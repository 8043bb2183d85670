"""The colours of figures and pages: one name, one colour on light paper and one on dark.

After Okabe & Ito, "Color Universal Design", 2008, darkened for light paper and lightened for dark paper until each
keeps a contrast of 3:1 (lines, marks) or 4.5:1 (text) as WCAG 2.2 asks; `tests/report/test_palette.py` computes it.
Nothing is told by colour alone.
"""

from __future__ import annotations

from typing import NamedTuple


class Colour(NamedTuple):
    """One role's colour in both themes, as #rrggbb in lower case."""

    light: str
    dark: str


TEXT = {
    "ink": Colour("#1a1d21", "#e9ebee"),
    "muted": Colour("#5a626c", "#a3abb6"),
    "link": Colour("#005a9c", "#7cc4f5"),
    "good": Colour("#006b52", "#4ad3a6"),
    "fair": Colour("#8a4b00", "#f0b04c"),
    "poor": Colour("#a8261c", "#ff9185"),
}
PAPER = {
    "paper": Colour("#f6f5f2", "#101317"),
    "card": Colour("#fffffe", "#181c22"),
    "zone": Colour("#efeeea", "#20252d"),
}
RULES = {
    "rule": Colour("#dcdad4", "#2f3640"),
    "axis": Colour("#8c929a", "#6d7682"),
}
SERIES = {
    "series-1": Colour("#0072b1", "#56b4e8"),
    "series-2": Colour("#d55e00", "#e69f01"),
    "series-3": Colour("#00614a", "#1f9e75"),
    "series-4": Colour("#9a3c7a", "#e08db7"),
    "series-5": Colour("#5c5300", "#f0e442"),
    "series-6": Colour("#80868f", "#8a939f"),
}
ROLES: dict[str, Colour] = {**TEXT, **PAPER, **RULES, **SERIES}


def light(role: str) -> str:
    """Return a role's colour on light paper; a figure is drawn in these, and an SVG's are replaced by variables."""
    return ROLES[role].light


def series(number: int) -> str:
    """Return the colour of a series by its place."""
    return light(f"series-{number % len(SERIES) + 1}")


def variables(theme: str) -> str:
    """Return the CSS variables of a theme, ``light`` or ``dark``."""
    return " ".join(f"--{role}: {getattr(colour, theme)};" for role, colour in ROLES.items())


def themed(svg: str) -> str:
    """Replace each colour of light paper by its CSS variable, so that one drawing serves both themes."""
    for role, colour in ROLES.items():
        svg = svg.replace(colour.light, f"var(--{role})")
    return svg


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, 1 to 21 (WCAG 2.2, "contrast ratio")."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
